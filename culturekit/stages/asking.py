"""What a stage that asks a model would ask, and what that costs: said, and tried on a few rows, before it is done."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from culturekit.records.work import Work

__all__ = ["AskedPlan", "Asking", "Left", "Tried"]


class Left(NamedTuple):
    """What is left to ask, and what it takes; None is what is not known."""

    requests: int | None = 0
    tokens: int | None = 0
    dollars: float | None = 0.0


class Told(Protocol):
    """Something that a command says before a stage is done."""

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        ...

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        ...


class AskedPlan(Told, Protocol):
    """What a stage would ask."""

    @property
    def units(self) -> int:
        """What is asked about."""
        ...

    @property
    def left(self) -> Left:
        """What is left to ask."""
        ...


class Tried(Told, Protocol):
    """What a pilot brought: a few rows of a stage, asked for before the rest."""

    @property
    def to_mend(self) -> str:
        """Why a person has to look at the replies before the rest is asked; empty where nobody has to."""
        ...


@dataclass(frozen=True, slots=True)
class Asking:
    """How a stage asks.

    Attributes:
        judge: who is asked, as a SPEC.
        unit: what is asked about.
        free: whether nobody is paid.
        plan: says what would be asked for a folder, after a pilot where there was one; nothing is sent.
        pilot: asks about so many units, where the stage will find the answers.
        ahead: whether it can be planned before what it reads is there.
        each: says what one of what is asked about costs in US dollars; None where that is not known.
    """

    judge: str
    unit: str
    free: bool
    plan: Callable[[Path, Any], AskedPlan]
    pilot: Callable[[Work, int], Tried] | None = None
    ahead: bool = False
    each: Callable[[], float] | None = None
