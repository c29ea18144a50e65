"""What is answered when somebody asks why an item is, or is not, among the artifacts of a concept."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from culturekit.kg.graph_tables import Place

__all__ = ["CountrySaid", "Explanation", "PathStep", "PathStory", "Reason", "RootHop", "StepSaid", "Verdict"]

Verdict: TypeAlias = Literal["in", "out"]


@dataclass(frozen=True, slots=True)
class StepSaid:
    """A statement that makes a step; `counts` is false for one that a walk does not hear."""

    property: str
    rank: str
    qualified: bool
    ended: bool
    counts: bool


@dataclass(frozen=True, slots=True)
class PathStep:
    """An item on a path: what it says of the one before it, where the dump says so, and what closes the step."""

    qid: str
    label: str | None
    said: tuple[StepSaid, ...]
    place: Place | None
    cut: str | None


@dataclass(frozen=True, slots=True)
class PathStory:
    """A path from a root to the item; it is open when nothing cuts it."""

    root: str
    hop: int
    open: bool
    steps: tuple[PathStep, ...]


@dataclass(frozen=True, slots=True)
class RootHop:
    """A root that has the item below it: the smallest hop of an open path, and how far it is walked from."""

    qid: str
    label: str | None
    hop: int
    limit: int


@dataclass(frozen=True, slots=True)
class CountrySaid:
    """A statement of a country, whether it counts, and whether the concept wants the country."""

    property: str
    value: str | None
    label: str | None
    snak: str
    rank: str
    qualified: bool
    ended: bool
    counts: bool
    in_scope: bool


@dataclass(frozen=True, slots=True)
class Reason:
    """Why, as a word for machines and a sentence for people."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an item is or is not an artifact of a concept."""

    qid: str
    label: str | None
    description: str | None
    place: Place | None
    concept: str
    verdict: Verdict
    reasons: tuple[Reason, ...]
    roots: tuple[RootHop, ...]
    countries: tuple[CountrySaid, ...]
    open_paths: int
    more_open_paths: bool
    cut_paths: int
    more_cut_paths: bool
    paths: tuple[PathStory, ...]
