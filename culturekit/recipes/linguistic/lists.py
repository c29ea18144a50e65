"""The lists behind prompts, from YAML: nouns, groups, prompts about groups, pairs of dialects."""

from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from culturekit.core.package_data import shipped
from culturekit.core.yaml_source import StrictModel, load_model

LISTS = "recipes/linguistic/linguistic_lists.yaml"
PAPER, UNREVIEWED = "from the paper", "proposed, unreviewed"  # where a pair is from
VOWELS = frozenset("aeiou")
CONSONANT_SOUNDS = ("eu", "uni", "use")  # words that begin with a vowel and sound otherwise


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
    """One thing in two dialects, and sentences with a gap for either; `literal` is what else the other may mean.

    A pair without a `dialect` is of any; `source` is where a reader can look the word up.
    """

    standard: str
    other: str
    literal: str = ""
    dialect: str = ""
    origin: Literal["from the paper", "proposed, unreviewed", "reviewed", "listed"] = "listed"
    source: str = ""
    frames: Annotated[tuple[str, ...], Field(min_length=1)]


class Lists(StrictModel):
    """Everything that is asked for; a list that is left out is the shipped one."""

    nouns: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    specific: tuple[SpecificGroup, ...] = ()
    pairs: tuple[DialectPair, ...] = ()

    def pairs_of(self, dialect: str) -> tuple[DialectPair, ...]:
        """Select the pairs of a dialect; AAVE is another name of AAE."""
        return tuple(pair for pair in self.pairs if pair.dialect in ("", "AAE" if dialect == "AAVE" else dialect))


@cache
def shipped_lists() -> Lists:
    """Read the shipped lists."""
    return load_model(shipped(LISTS), Lists)


def load_lists(path: Path | None) -> Lists:
    """Read lists of the user; what they leave out is as shipped."""
    if path is None:
        return shipped_lists()
    stated = load_model(path, Lists)
    return shipped_lists().model_copy(update={name: getattr(stated, name) for name in stated.model_fields_set})


def lists_input(path: Path | None) -> dict[str, Path]:
    """Name the file of lists as an input of a stage."""
    return {"lists": shipped(LISTS) if path is None else path}


def article(words: str) -> str:
    """Put a or an before words, by how they begin."""
    first = words.casefold()
    return f"{'an' if first[:1] in VOWELS and not first.startswith(CONSONANT_SOUNDS) else 'a'} {words}"
