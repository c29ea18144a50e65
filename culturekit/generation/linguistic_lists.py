"""The lists behind the prompts of the recipe `linguistic`: nouns, groups, prompts about groups, pairs of dialects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from culturekit.core.package_data import found_or_shipped, shipped, shipped_names
from culturekit.core.yaml_source import StrictModel, load_model, not_empty

LISTS = "generation/linguistic_lists.yaml"
VOWELS = frozenset("aeiou")
SOUNDS_LIKE_A_CONSONANT = ("eu", "uni", "use")


class Group(StrictModel):
    """A group that neutral prompts are held against: its name, its code in dials, and its adjective."""

    name: str
    code: str
    adjective: str


class SpecificGroup(StrictModel):
    """A group with prompts of its own, some of which are printed in the paper."""

    group: str
    code: str
    prompts: tuple[str, ...]
    printed: tuple[str, ...] = ()

    @model_validator(mode="after")
    def printed_are_prompts(self) -> Self:
        """Refuse a printed prompt that is not among the prompts."""
        if unknown := [text for text in self.printed if text not in self.prompts]:
            raise ValueError(f"{unknown[0]!r} is printed, and not among the prompts of {self.group}")
        return self


class DialectPair(StrictModel):
    """One thing in two dialects, and sentences with a gap for either; `literal` is what else the other may mean."""

    standard: str
    other: str
    literal: str = ""
    frames: Annotated[tuple[str, ...], Field(min_length=1)]


class Lists(StrictModel):
    """Everything that is asked for; a list that is left out is the shipped one."""

    nouns: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    specific: tuple[SpecificGroup, ...] = ()
    pairs: tuple[DialectPair, ...] = ()


@cache
def lists() -> Lists:
    """Read the shipped lists."""
    return load_model(shipped(LISTS), Lists)


def load_lists(path: Path | None) -> Lists:
    """Read lists of the user; what they leave out is as shipped."""
    if path is None:
        return lists()
    stated = load_model(path, Lists)
    return lists().model_copy(update={name: getattr(stated, name) for name in stated.model_fields_set})


def article(words: str) -> str:
    """Put a or an before words, by how they begin."""
    first = words.casefold()
    return f"{'an' if first[:1] in VOWELS and not first.startswith(SOUNDS_LIKE_A_CONSONANT) else 'a'} {words}"


@dataclass(frozen=True, slots=True)
class NeutralText:
    """A prompt about a noun: of a group, or of none."""

    noun: str
    group: Group | None
    text: str


def neutral_texts(nouns: Sequence[str], groups: Sequence[Group] = ()) -> list[NeutralText]:
    """Write each noun with `typical`, and with the adjective of each group in its place."""
    return [
        NeutralText(noun, group, article(f"{'typical' if group is None else group.adjective} {noun}"))
        for noun in nouns
        for group in (None, *(groups or lists().groups))
    ]


# Lists of objects and regions that models are asked for, from YAML: shipped ones, or the user's own.

FOLDER = "generation/places"

Word = Annotated[str, Field(pattern=r"^\S(.*\S)?$", max_length=80)]
Country = Annotated[str, Field(pattern="^[A-Z]{2}$")]


class PlaceList(StrictModel):
    """Objects, and regions with countries of theirs; `written` says how a prompt names a region otherwise."""

    objects: Annotated[tuple[Word, ...], AfterValidator(not_empty)]
    regions: Annotated[Mapping[Word, tuple[Country, ...]], AfterValidator(not_empty)]
    written: Mapping[Word, Word] = {}

    @model_validator(mode="after")
    def each_once(self) -> "PlaceList":
        """Refuse what stands twice, a country of two regions, and words for no region."""
        countries = [country for own in self.regions.values() for country in own]
        for what, names in (("object", self.objects), ("region", tuple(self.regions)), ("country", tuple(countries))):
            folded = [name.casefold() for name in names]
            twice = next((name for name in names if folded.count(name.casefold()) > 1), None)
            if twice is not None:
                raise ValueError(f"the {what} {twice!r} stands twice")
        unknown = sorted(set(self.written) - set(self.regions))
        if unknown:
            raise ValueError(f"written names {unknown[0]!r}, which is no region of the list")
        return self

    def phrase(self, region: str) -> str:
        """Name a region as a prompt does."""
        return self.written.get(region, region)


def place_file(said: str) -> Path:
    """Find the file of a list: one of the user's, or the shipped one of that name."""
    return found_or_shipped(said, FOLDER, "list of objects and regions")


def load_places(path: Path) -> PlaceList:
    """Read a list; every mistake is said at once."""
    return load_model(path, PlaceList)


def shipped_places() -> tuple[PlaceList, ...]:
    """Give all shipped lists."""
    return tuple(load_places(place_file(name)) for name in shipped_names(FOLDER, ".yaml"))
