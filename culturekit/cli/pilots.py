"""The pilot of a paid stage: a few rows first, to say what the rest costs."""

from pathlib import Path
from typing import Protocol, TypeVar

from culturekit.cli.progress import progress_for
from culturekit.cli.stages import stoppable
from culturekit.errors import UsageError
from culturekit.records.work import Engine, Progress

__all__ = ["tried"]

Tried_co = TypeVar("Tried_co", covariant=True)


class Triable(Protocol[Tried_co]):
    """A paid stage that can be tried on a few rows."""

    @property
    def out(self) -> Path:
        """Where the stage will lie."""
        ...

    def pilot(self, size: int, *, engine: Engine, progress: Progress, wait: bool) -> Tried_co | None:
        """Try so many; None where nothing is left."""
        ...


def tried(run: Triable[Tried_co], size: int, *, what: str, wait: bool, as_json: bool) -> Tried_co:
    """Try a stage on a few rows, and say where nothing is left of `what`."""
    from culturekit.pipeline.local_engine import LocalEngine

    with stoppable(), progress_for(as_json=as_json) as progress, LocalEngine(1) as engine:
        progress.stage("pilot")
        outcome = run.pilot(size, engine=engine, progress=progress, wait=wait)
    if outcome is None:
        raise UsageError(f"nothing is left to try: the {what} is done", where=str(run.out))
    return outcome
