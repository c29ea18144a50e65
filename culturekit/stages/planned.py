"""What a stage would take, as its plan says it: how many units, bytes, seconds, requests, tokens and dollars."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from culturekit.stages.stage import Stage

__all__ = ["Ahead", "PlannedStage", "Slot", "ToPlan"]


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """One stage of a plan; None is what cannot be known before the stages in front have run.

    `lacks` is what this machine has to be given before a run, such as a key.
    """

    name: str
    state: str
    units: int | None = None
    unit: str = ""
    bytes: int | None = None
    seconds: float | None = None
    requests: int | None = 0
    tokens: int | None = 0
    dollars: float | None = 0.0
    lacks: str = ""

    def as_data(self) -> dict[str, object]:
        """Give the stage as data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Ahead:
    """A stage in front of another, and how many units, such as images, it has or will have, as far as that is known."""

    stage: Stage
    units: int | None


@dataclass(frozen=True, slots=True)
class ToPlan:
    """A stage that is not done.

    Attributes:
        stage: what is to be done.
        state: how far it is.
        out: its folder.
        settled: whether all it reads is there and will stay as it is.
        ahead: the stages of the run that it reads, by the role of the input.
    """

    stage: Stage
    state: str
    out: Path
    settled: bool
    ahead: Mapping[str, Ahead]


Slot: TypeAlias = Callable[[ToPlan], PlannedStage]
"""What stands beside a stage in a run, and plans it."""
