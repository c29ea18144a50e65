"""The engines that culturekit knows by name: who works on the shards of a stage."""

from contextlib import AbstractContextManager
from pathlib import Path

from culturekit.pipeline.workers.local_engine import LocalEngine
from culturekit.records.work import Engine
from culturekit.registry import Entry, Registry, Spec

__all__ = ["ENGINES", "engine_for"]

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
)


def engine_for(text: str, *, workers: int | None, folder: Path) -> AbstractContextManager[Engine]:
    """Make the engine of a command; `folder` is where the command writes, which all workers have to see."""
    return ENGINES.make(text, workers=workers, folder=folder)


def local(spec: Spec, *, workers: int | None, folder: Path) -> LocalEngine:
    """Make the default engine; its workers see what this process sees, so that the folder does not matter."""
    del folder
    spec.refuse_options()
    return LocalEngine(workers)
