"""What a stage would take, as its plan says it: how many units, bytes, seconds, requests, tokens and dollars."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from culturekit.stages.stage import Stage

__all__ = ["PlannedStage", "Slot", "ToPlan", "nothing_known"]


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """One stage of a plan; None is what cannot be known before the stages in front have run."""

    name: str
    state: str
    units: int | None = None
    unit: str = ""
    bytes: int | None = None
    seconds: float | None = None
    requests: int | None = 0
    tokens: int | None = 0
    dollars: float | None = 0.0

    def as_data(self) -> dict[str, object]:
        """Give the stage as data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ToPlan:
    """A stage that is not done: its state, its folder, and whether all it reads is there and will stay as it is."""

    stage: Stage
    state: str
    out: Path
    settled: bool


Slot: TypeAlias = Callable[[ToPlan], PlannedStage]
"""What stands beside a stage in a run, and plans it."""


def nothing_known(plan: ToPlan) -> PlannedStage:
    """Plan a stage that costs nothing but time, and nobody knows how much."""
    return PlannedStage(plan.stage.name, plan.state)
