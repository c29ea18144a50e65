"""What a stage is given to work with, and what it answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

QUARANTINED = "quarantined"
"""Under this name a stage counts rows that stay in its tables, but that a person has to look at."""

NOT_COMPARABLE = "not_comparable"
"""Under this name a manifest notes, in sentences, what is not comparable between the models that were scored."""

MARKED = "marked"
"""Under this name a manifest notes what stands beside some of the scores, as it does in their params."""

UNDER_REVIEW = "released_under_review"
"""Under this name a release notes, by reason, the artifacts it took in although nobody kept them."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Maps work items; the answers never depend on how many workers there are or on who did what."""

    @property
    def workers(self) -> int:
        """How many items can be in work at once."""
        ...

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items.

        `function` is importable by name and writes whatever it keeps atomically: an item may be
        worked on again after its worker was killed.
        """
        ...


class Progress(Protocol):
    """Hears how far a stage is; the caller decides how that looks."""

    def begin(self, total: int, unit: str) -> None:
        """Announce how many units there are to do."""
        ...

    def advance(self, done: int) -> None:
        """Count units as done."""
        ...

    def tell(self, totals: str) -> None:
        """Say what has been found so far, in place of what was said before."""
        ...


class Quiet:
    """Progress that nobody looks at."""

    def begin(self, total: int, unit: str) -> None:
        """Pass over what there is to do."""

    def advance(self, done: int) -> None:
        """Pass over what is done."""

    def tell(self, totals: str) -> None:
        """Pass over what has been found."""


@dataclass(frozen=True, slots=True)
class Work:
    """The folders and the hands of one stage.

    `out` becomes the finished folder. `scratch` outlives a killed run and is gone when the stage is
    done: finished shards wait there. `in_run` tells that other stages of a run have been paid for before this one.
    """

    inputs: Mapping[str, Path]
    out: Path
    scratch: Path
    engine: Engine
    progress: Progress
    in_run: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage says of its work in the manifest: totals, and drops by reason."""

    counts: Mapping[str, int] = field(default_factory=dict)
    drops: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, object] = field(default_factory=dict)
