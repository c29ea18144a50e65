"""What a scheduler does, line by line in the file that CLUSTER_WATCH names; loaded with `dask scheduler --preload`."""

import json
import os
from pathlib import Path
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin


class Watch(SchedulerPlugin):  # type: ignore[misc] # distributed is not typed
    """Notes each task that a worker has done, and each worker that is gone."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, *what: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(what)}\n")

    def transition(self, key: object, start: str, finish: str, *args: object, **kwargs: Any) -> None:
        if (start, finish) == ("processing", "memory"):
            self.note("done", str(key), str(kwargs.get("worker")))

    def remove_worker(self, scheduler: object, worker: str, **kwargs: Any) -> None:
        self.note("gone", worker)


def dask_setup(scheduler: Any) -> None:
    scheduler.add_plugin(Watch(Path(os.environ["CLUSTER_WATCH"])))
