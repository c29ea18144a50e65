"""What a stage is given to work with, and what it answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

# Under this name a stage counts rows that stay in its tables, but that a person has to look at.
QUARANTINED = "quarantined"

# Under this name a manifest notes, in sentences, what is not comparable between the models that were scored.
NOT_COMPARABLE = "not_comparable"

MARKED = "marked"  # Under this name a manifest notes what stands beside some of the scores, as it does in their params

# Under this name a release notes, by reason, the artifacts it took in although nobody kept them.
UNDER_REVIEW = "released_under_review"

# Under this name a manifest notes how many rows failed for reasons that pass: the next run tries these again.
TRY_AGAIN = "try_again"

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Maps work items; the answers never depend on how many workers there are or on who did what."""

    @property
    def workers(self) -> int:
        """How many items can be in work at once."""

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items.

        `function` is importable by name and writes whatever it keeps atomically: an item may be
        worked on again after its worker was killed.
        """


class Progress(Protocol):
    """Hears how far a stage is; the caller decides how that looks."""

    def begin(self, total: int, unit: str) -> None:
        """Announce how many units there are to do."""

    def advance(self, done: int) -> None:
        """Count units as done."""

    def tell(self, totals: str) -> None:
        """Say what has been found so far, in place of what was said before."""


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
    """The folders and the engine of one stage.

    `out` becomes the finished folder. `scratch` outlives a killed run and is gone when the stage is
    done: finished shards wait there. `in_run` tells that other stages of a run have been paid for before this one.
    `before` is the finished folder of the same stage some of whose rows are tried again.
    """

    inputs: Mapping[str, Path]
    out: Path
    scratch: Path
    engine: Engine
    progress: Progress
    in_run: bool = False
    before: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage says of its work in the manifest: totals, and drops by reason."""

    counts: Mapping[str, int] = field(default_factory=dict)
    drops: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


class Ended(Protocol):
    """How a stage ended: its outcome, or the manifest of it."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Totals."""

    @property
    def notes(self) -> Mapping[str, Any]:
        """What else is noted."""


def right(ended: Ended) -> int | None:
    """Count the rows that came out right, such as images that were made; None where a stage does not count them."""
    if (outcomes := ended.notes.get("outcomes")) is not None:
        return sum(int(outcomes.get(name, 0)) for name in ("ok", "repaired"))
    return ended.counts.get("ok")
