"""One stage of a plan, and what a planner is told of it."""

from dataclasses import asdict, dataclass

from culturekit.pipeline.cube.run import CubeRun
from culturekit.stages.stage import Stage

__all__ = ["PlannedStage", "ToPlan"]


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
    """A stage that is not done: its state, its run, and whether all it reads is there and will stay as it is."""

    stage: Stage
    state: str
    run: CubeRun
    settled: bool
