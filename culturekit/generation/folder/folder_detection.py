"""How the files of a folder are named, found out where nobody said it: a list in it, or the pattern that fits.

Nothing is taken on trust: a pattern counts by how many names it leads to a prompt, and the dry run shows it.
"""

import difflib
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import polars as pl

from culturekit.core.errors import UsageError
from culturekit.core.schemas import without_prefix
from culturekit.generation.folder.folder_list import ListedFile, LoadedList, read_list
from culturekit.generation.folder.folder_listing import (
    Fields,
    Listing,
    Pattern,
    bare,
    folded,
    parse_pattern,
    parse_patterns,
    spaced,
)

# Which prompt a file answers, by what its name or its row in a list says.

# the fields that say which prompt is meant
_IDENTIFYING = ("prompt_id", "prompt", "artifact_id", "artifact", "concept", "group", "country")
_SHORTEST_BEGINNING = 8  # bytes that the beginning of a cut text has at least; shorter ones begin too many
_SHOWN = 3


class Prompt(NamedTuple):
    """A prompt, as far as its images need it."""

    prompt_id: str
    text: str
    concept: str | None
    country: str | None
    artifact_id: str | None
    group: str | None


@dataclass(frozen=True, slots=True)
class Names:
    """What countries and artifacts are called, by code and by id."""

    countries: Mapping[str, Sequence[str]] = field(default_factory=dict)
    artifacts: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Hit(NamedTuple):
    """The place of a prompt, or why there is none; `several` are the prompts that all fit."""

    position: int | None
    reason: str = ""
    several: tuple[int, ...] = ()


class _Texts:
    """Prompts by a folded form of their text, also by its beginning."""

    def __init__(self, keys: Iterable[str]) -> None:
        """Order the keys; prompts are counted from 0."""
        self.places: dict[str, list[int]] = defaultdict(list)
        for index, key in enumerate(keys):
            if key:
                self.places[key].append(index)
        self.ordered = sorted(self.places)

    def with_text(self, key: str) -> Sequence[int]:
        return self.places.get(key, ())

    def begun(self, key: str) -> Sequence[int]:
        """Find the prompts whose text begins like this, as a name that was cut does."""
        if len(key.encode()) < _SHORTEST_BEGINNING:
            return ()
        found: list[int] = []
        for other in self.ordered[bisect_left(self.ordered, key) :]:
            if not other.startswith(key) or len(found) > _SHOWN:
                break
            found += self.places[other]
        return found


class KnownPrompts:
    """The prompts of a table, to be found by id, by text, and by what they are about."""

    def __init__(self, prompts: pl.DataFrame, names: Names | None = None) -> None:
        """Take a prompts table; rows stand in the order of their ids."""
        rows = prompts.sort("prompt_id").select(Prompt._fields).iter_rows()
        self.prompts = [Prompt._make(row) for row in rows]
        self.names = names or Names()
        self.ids = {prompt.prompt_id: index for index, prompt in enumerate(self.prompts)}
        self.folded_ids = _Texts(folded(prompt.prompt_id) for prompt in self.prompts)
        self.texts = _Texts(folded(prompt.text) for prompt in self.prompts)
        self.bare_texts = _Texts(bare(prompt.text) for prompt in self.prompts)
        # the prompts that are about something, under each of its names, and those that have a word in their text
        self.about: dict[tuple[str, str], set[int]] = defaultdict(set)
        self.mentions: dict[str, set[int]] = defaultdict(set)
        for index, prompt in enumerate(self.prompts):
            for what, name in self.attributes(prompt):
                self.about[what, folded(name)].add(index)
                self.about[what, bare(name)].add(index)
            for word in spaced(prompt.text).split():
                self.mentions[word].add(index)

    def attributes(self, prompt: Prompt) -> Iterable[tuple[str, str]]:
        """Give what a prompt is about, by field."""
        artifact = prompt.artifact_id or ""
        called: Mapping[str, Sequence[str | None]] = {
            "concept": [prompt.concept], "group": [prompt.group], "artifact_id": [artifact],
            "country": [prompt.country, *self.names.countries.get(prompt.country or "", ())],
            "artifact": [without_prefix(artifact), *self.names.artifacts.get(artifact, ())],
        }  # fmt: skip
        return ((what, name) for what, names in called.items() for name in names if name)

    def find(self, fields: Fields) -> Hit:
        """Find the one prompt that everything said fits."""
        named = {what: text for what in _IDENTIFYING if (text := fields.get(what))}
        if not named:
            return Hit(None, "the name says nothing of a prompt")
        places: Sequence[int] | set[int] | None = None
        if "prompt_id" in named:
            places = self.by_id(named["prompt_id"])
            if not places:
                return Hit(None, f"no prompt has the id {_cut(named['prompt_id'])!r}")
        elif "prompt" in named:
            places = self.by_text(named["prompt"])
            if not places:
                return Hit(None, f"no prompt reads {_cut(named['prompt'])!r}")
        for what in ("artifact_id", "artifact", "concept", "group", "country"):
            if what in named and (places is None or len(places) > 1):
                places = self.narrowed(places, what, named[what])
                if not places:
                    return Hit(None, f"no such prompt is about the {what.removesuffix('_id')} {_cut(named[what])!r}")
        assert places is not None
        if len(places) == 1:
            return Hit(next(iter(places)))
        several = tuple(sorted(places))
        ids = ", ".join(self.prompts[number].prompt_id for number in several[:_SHOWN])
        more = ", ..." if len(several) > _SHOWN else ""
        return Hit(None, f"fits more than one prompt: {ids}{more}", several)

    def by_id(self, prompt_id: str) -> Sequence[int]:
        """Find a prompt by its id, also where a file name could not hold it as it is."""
        exact = self.ids.get(prompt_id)
        return self.folded_ids.with_text(folded(prompt_id)) if exact is None else (exact,)

    def by_text(self, text: str) -> Sequence[int]:
        """Find prompts by their text: whole, without accents, or the beginning."""
        key, plain, bare_texts = folded(text), bare(text), self.bare_texts
        whole = self.texts.with_text(key) or bare_texts.with_text(plain)
        return whole or self.texts.begun(key) or bare_texts.begun(plain)

    def narrowed(self, places: Iterable[int] | None, what: str, text: str) -> set[int]:
        """Keep the prompts that are about something; what no name tells is looked for in the texts."""
        found = self.about.get((what, folded(text))) or self.about.get((what, bare(text))) or set()
        if not found and what == "artifact":
            found = self.mentioning(text)
        return found if places is None else found & set(places)

    def mentioning(self, name: str) -> set[int]:
        """Find the prompts whose text has these words in a row."""
        words = spaced(name).split()
        places = set.intersection(*(self.mentions.get(word, set()) for word in words)) if words else set()
        return {number for number in places if f" {' '.join(words)} " in f" {spaced(self.prompts[number].text)} "}

    def nearest(self, fields: Fields) -> list[str]:
        """Name prompts that a name may have meant, the nearest first."""
        by_id = fields.get("prompt_id")
        if by_id:
            return difflib.get_close_matches(by_id, self.ids, n=_SHOWN, cutoff=0.5)
        bare_text = bare(fields.get("prompt") or fields.get("artifact") or "")[:200]
        keys = difflib.get_close_matches(bare_text, self.bare_texts.ordered, n=_SHOWN, cutoff=0.4)
        return [self.prompts[self.bare_texts.places[key][0]].text for key in keys]


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


# What is said of each file of a folder: by its row in a list, by its name, and by both which prompt it answers.

_NOTHING: Mapping[str, object] = MappingProxyType({})
_NOT_LISTED = "not in the list"
_NO_PATTERN = "fits no pattern"


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
            return NameReading({}, _NOTHING, "", Hit(None, _NOT_LISTED))
    best: NameReading | None = None
    for fields, by in _readings(name, naming, listed):
        hit = None if known is None else known.find(fields)
        reading = NameReading(fields, listed.cells if listed else _NOTHING, by, hit)
        if hit is None or hit.position is not None:
            return reading
        if best is None or (hit.several and not (best.hit and best.hit.several)):
            best = reading
    if best is not None:
        return best
    unread = Hit(None, _NO_PATTERN) if naming.patterns or known is not None else None
    return NameReading({}, _NOTHING, "", unread)


def _readings(name: str, naming: Naming, listed: ListedFile | None) -> Iterator[tuple[Fields, str]]:
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


_FORMS = ("csv", "jsonl", "tsv", "json", "parquet")
_LIST_NAMES = ("images.parquet", *(f"{stem}.{form}" for stem in ("metadata", "manifest") for form in _FORMS))

# what is tried, the first of equals first
_CANDIDATES = tuple(
    parse_pattern(text)
    for field in ("{prompt_id}", "{prompt}")
    for text in (
        field, f"{field}__{{id}}", f"{field}_{{id}}", f"{field}-{{id}}", f"{field} {{id}}", f"{field}.{{id}}",
        f"{{id}}__{field}", f"{{id}}_{field}", f"{{id}}-{field}", f"{{id}} {field}",
        f"{{id}}-{{seed}}-{field}", f"{field}/{{_}}", f"{field}/{{_}}/{{_}}",
    )
)  # fmt: skip

_SAMPLE = 1_000
_MOST_PATTERNS = 3


def naming_of(root: Path, *, pattern: str, manifest: str) -> Naming:
    """Take what was stated; where nothing was, a list that lies in the folder."""
    try:
        patterns = parse_patterns(pattern)
    except ValueError as error:
        raise UsageError(str(error), expected="such as {model}/{prompt}__{id}") from error
    if manifest:
        path = stated_list(root, manifest)
        return Naming(patterns, read_list(path, label=manifest))
    if patterns:
        return Naming(patterns)
    found = find_list(root)
    if found is None:
        return Naming(guessed=True)
    try:
        return Naming((), read_list(found, label=found.name), guessed=True)
    except UsageError as error:
        error.hint = f"{error.hint} State pattern=... to go by the names and not by {found.name}.".strip()
        raise


def stated_list(root: Path, manifest: str) -> Path:
    """Find a list in the folder, or else from where the command runs."""
    for path in (root / manifest, Path(manifest)):
        if path.is_file():
            return path
    raise UsageError(
        "there is no such list of images", where=manifest, expected=f"a file in {root} or here",
        hint="manifest= names a CSV, TSV, JSON, JSON lines or Parquet file.",
    )  # fmt: skip


def find_list(root: Path) -> Path | None:
    """Find a list by its name; what another program calls a manifest is none."""
    for name in _LIST_NAMES:
        path = root / name
        if path.is_file() and not (name == "manifest.json" and _is_stage_manifest(path)):
            return path
    return None


def _is_stage_manifest(path: Path) -> bool:
    """Tell the manifest of a stage of ours from a list of images."""
    try:
        held = msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError:
        return False
    return isinstance(held, dict) and {"stage", "key", "outputs"} <= held.keys()


def guessed(naming: Naming, listing: Listing, known: KnownPrompts | None) -> Naming:
    """Find the patterns that lead most names to a prompt; without prompts no name can be right or wrong."""
    if known is None or naming.patterns or naming.listed is not None:
        return naming
    step = max(1, len(listing.pictures) // _SAMPLE)
    names = [file.name for file in listing.pictures[::step]]
    chosen: list[Pattern] = []
    while names and len(chosen) < _MOST_PATTERNS:
        fits = [(fitting(pattern, names, known), pattern) for pattern in _CANDIDATES if pattern not in chosen]
        best, pattern = max(fits, key=lambda pair: len(pair[0]))
        if not best:
            break
        chosen.append(pattern)
        names = [name for name in names if name not in best]
    return Naming(tuple(chosen), guessed=True)


def fitting(pattern: Pattern, names: Sequence[str], known: KnownPrompts) -> set[str]:
    """Give the names that a pattern leads to one prompt."""

    def fits(name: str) -> bool:
        both = (pattern.fields(name), pattern.fields(name, otherwise=True))
        return any(fields is not None and known.find(fields).position is not None for fields in both)

    return set(filter(fits, names))
