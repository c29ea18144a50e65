"""What is said of each file of a folder: by its row in a list, by its name, and by both which prompt it answers."""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from culturekit.generation.folder.folder_list import ListedFile, LoadedList
from culturekit.generation.folder.folder_listing import Listing
from culturekit.generation.folder.folder_patterns import Fields, Pattern
from culturekit.generation.folder.folder_prompts import Hit, KnownPrompts

__all__ = ["NOT_LISTED", "NameReading", "Naming", "read_name"]

NOTHING: Mapping[str, object] = MappingProxyType({})
NOT_LISTED = "not in the list"
NO_PATTERN = "fits no pattern"


@dataclass(frozen=True)
class Naming:
    """How names are read: by a list, by patterns in their order, or not at all; `guessed` where nobody stated it."""

    patterns: tuple[Pattern, ...] = ()
    listed: LoadedList | None = None
    guessed: bool = False

    @cached_property
    def by_form(self) -> Mapping[str, ListedFile]:
        """The list by names in one form of Unicode: Macs write accents apart."""
        files = {} if self.listed is None else self.listed.files
        return {unicodedata.normalize("NFC", name): file for name, file in files.items()}

    def described(self) -> list[str]:
        """Name the list and the patterns, for people."""
        return [*([self.listed.label] if self.listed else []), *(pattern.text for pattern in self.patterns)]


class NameReading(NamedTuple):
    """What is said of a file: fields, cells, by what, and the prompt it answers where prompts are known."""

    fields: Fields
    cells: Mapping[str, object]
    by: str
    hit: Hit | None


def read_name(name: str, naming: Naming, known: KnownPrompts | None) -> NameReading:
    """Read a name. A row of a list goes before the name; of the patterns that fit, the first that finds a prompt."""
    listed = None
    if naming.listed is not None:
        listed = naming.listed.files.get(name) or naming.by_form.get(unicodedata.normalize("NFC", name))
        if listed is None and not naming.patterns:
            return NameReading({}, NOTHING, "", Hit(None, NOT_LISTED))
    best: NameReading | None = None
    for fields, by in readings(name, naming, listed):
        hit = None if known is None else known.find(fields)
        said = NameReading(fields, listed.cells if listed else NOTHING, by, hit)
        if hit is None or hit.place is not None:
            return said
        if best is None or (hit.several and not (best.hit and best.hit.several)):
            best = said
    if best is not None:
        return best
    unread = Hit(None, NO_PATTERN) if naming.patterns or known is not None else None
    return NameReading({}, NOTHING, "", unread)


def readings(name: str, naming: Naming, listed: ListedFile | None) -> Iterator[tuple[Fields, str]]:
    """Give every way to read a name, in order."""
    for pattern in naming.patterns:
        for otherwise in (False, True):
            fields = pattern.fields(name, otherwise=otherwise)
            if fields is not None and listed is not None:
                yield {**fields, **listed.fields}, naming.listed.label if naming.listed else pattern.text
            elif fields is not None:
                yield fields, pattern.text
    if listed is not None and naming.listed is not None:
        yield listed.fields, naming.listed.label


def absent_files(naming: Naming, listing: Listing) -> Iterator[ListedFile]:
    """Give the files that the list names and the folder lacks."""
    there = {unicodedata.normalize("NFC", file.name) for file in listing.pictures}
    files = {} if naming.listed is None else naming.listed.files
    return (file for name, file in files.items() if unicodedata.normalize("NFC", name) not in there)
