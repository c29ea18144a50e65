"""The engines that culturekit knows by name: who works on the shards of a stage."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from culturekit.contract import Contract
from culturekit.pipeline.workers.local_engine import LocalEngine
from culturekit.plugins import Plugin
from culturekit.records.work import Engine
from culturekit.registry import Entry, Registry, Spec

__all__ = ["ENGINES", "engine_for"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class HeldEngine:
    """An engine of another package: what an item raises is the item's, what the engine raises is the engine's."""

    def __init__(self, engine: Engine, plugin: Plugin) -> None:
        """Make sure that it has what engines have."""
        self.engine, self.plugin = engine, plugin
        with plugin.blamed("failed at workers"):
            self.workers = engine.workers
        if not isinstance(self.workers, int) or self.workers < 1:
            raise plugin.failure("has something else as workers", expected="at least 1", found=repr(self.workers))

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield one result for each item."""
        count = 0
        try:
            for result in self.engine.map(function, items):
                count += 1
                yield result
        except Exception as error:
            if not self.plugin.raised(error):
                raise
            with self.plugin.blamed("failed at map"):
                raise
        if count != len(items):
            how = "answers map with something else"
            raise self.plugin.failure(how, expected=f"{len(items)} results", found=f"{count}")


@dataclass(frozen=True, slots=True)
class EngineContract(Contract):
    """What makes an engine for the time of a block."""

    def held(self, thing: object, plugin: Plugin) -> Any:  # noqa: ANN401 - a context manager
        """Hold the engine that the block gets."""
        if not isinstance(thing, AbstractContextManager):
            raise plugin.failure("is no engine", expected="a context manager", found=type(thing).__name__)
        return entered(thing, plugin)


@contextmanager
def entered(engine: AbstractContextManager[Engine], plugin: Plugin) -> Iterator[HeldEngine]:
    """Serve a block; what fails within it is not the plugin's."""
    with ExitStack() as stack:
        with plugin.blamed("failed to begin"):
            begun = stack.enter_context(engine)
        yield HeldEngine(begun, plugin)


ENGINES: Registry[AbstractContextManager[Engine]] = Registry(
    "engine",
    [
        Entry(
            "local",
            "culturekit.pipeline.workers.engines:local",
            "processes of this machine",
            needs=("workers", "folder"),
        ),
        Entry(
            "dask",
            "culturekit.pipeline.workers.dask_engine:make_local",
            "a dask cluster of this machine, for the time of the run",
            extra="scale",
            needs=("workers", "folder"),
        ),
        *(
            Entry(
                scheme,
                "culturekit.pipeline.workers.dask_engine:make_remote",
                "the dask cluster whose scheduler is at this address",
                extra="scale",
                needs=("workers", "folder"),
            )
            for scheme in ("tcp", "tls")
        ),
    ],
    point="engine",
    contract=EngineContract((Engine,)),
)


def engine_for(text: str, *, workers: int | None, folder: Path) -> AbstractContextManager[Engine]:
    """Make the engine of a command; `folder` is where the command writes, which all workers have to see."""
    return ENGINES.make(text, workers=workers, folder=folder)


def local(spec: Spec, *, workers: int | None, folder: Path) -> LocalEngine:
    """Make the default engine; its workers see what this process sees, so that the folder does not matter."""
    del folder
    spec.refuse_options()
    return LocalEngine(workers)
