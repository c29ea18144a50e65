"""The engine for more than one machine: shards as tasks of a dask cluster.

A shard is a function, an item, and the ground they stand on. Tasks of a dead worker are given to another by the
scheduler. An error travels back as data, so that it arrives as what it was.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Annotated, Any, Self, TypeVar
from uuid import uuid4

import msgspec
from distributed import CancelledError, KilledWorker

from culturekit.errors import IntegrityError, UsageError
from culturekit.pipeline.workers.dask_cluster import cluster, connected, dead, deserted, talking_to, unready
from culturekit.pipeline.workers.local_engine import available_cores
from culturekit.pipeline.workers.shard_task import (
    Raised,
    Returned,
    Task,
    abandoned_in,
    check_ground,
    end_series,
    work_on,
)
from culturekit.pipeline.workers.shared_ground import SharedGround, lay_ground
from culturekit.registry import Spec

__all__ = ["DaskEngine", "Options", "make_local", "make_remote"]

Item = TypeVar("Item")
Result = TypeVar("Result")

SECONDS_BETWEEN_LOOKS = 5.0
"""How often a run that waits looks whether there are workers."""

SECONDS_BETWEEN_QUESTIONS = 0.2

AHEAD = 8
"""Items per worker that are handed out before the first of them is back."""


@dataclass(frozen=True, slots=True)
class Options:
    """What can be said of a cluster.

    Attributes:
        wait: Seconds to wait for a worker while there is none, as when machines are still to be had.
    """

    wait: Annotated[float, msgspec.Meta(gt=0)] = 120.0


class DaskEngine:
    """Hands items to a dask cluster, for a block."""

    def __init__(
        self, address: str = "", *, folder: Path, workers: int | None = None, options: Options | None = None
    ) -> None:
        """Decide which cluster: the one whose scheduler is at an address, or without one a cluster of this machine.

        Args:
            address: Of the scheduler, such as `tcp://host:8786`.
            folder: Where the stage is written; all workers have to see it.
            workers: Processes of a cluster of this machine.
            options: What else can be said of the cluster.
        """
        self.address, self.folder, self.processes = address, folder, workers or available_cores()
        self.options = options or Options()
        self.stack = ExitStack()
        self.client: Any = None
        self.ground: SharedGround | None = None

    @property
    def workers(self) -> int:
        """How many workers there are now, or will be."""
        if not self.client:
            return self.processes
        with talking_to(self.place):
            return max(1, len(self.client.nthreads()))

    def __enter__(self) -> Self:
        """Connect, and make sure that the workers share what they must."""
        with ExitStack() as stack:
            self.ground = lay_ground(self.folder)
            stack.callback(self.ground.marker.unlink, missing_ok=True)
            self.client = stack.enter_context(connected(self.address or stack.enter_context(cluster(self.processes))))
            self.check_workers(self.ground)
            self.stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the cluster; items that are left do nothing any more, for the marker is gone."""
        self.stack.close()
        self.client = None

    def check_workers(self, ground: SharedGround) -> None:
        """Wait for the first worker, and ask all that are there what they do not share."""
        finished: SimpleQueue[int] = SimpleQueue()
        first = self.client.submit(check_ground, ground, key=f"culturekit-ready-{uuid4().hex}", pure=False)
        first.add_done_callback(partial(note, finished, 0))
        self.next_of(finished, {0: first})
        found = [self.answer(first, "the first question"), *self.ask_all(ground)]
        for problem in found:
            if isinstance(problem, Raised):
                raise problem.error
            if isinstance(problem, Exception) and not isinstance(problem, OSError):  # a worker may die meanwhile
                raise unready(problem) from problem

    def ask_all(self, ground: SharedGround) -> list[Raised | Exception | None]:
        """Ask every worker; one that cannot even read the question answers with an error."""
        self.wait_while(abandoned_in, ground.marker.parent)
        with talking_to(self.place):
            return list(self.client.run(check_ground, ground, on_error="return").values())

    def wait_while(self, busy: Callable[[Any], bool], about: object) -> None:
        """Wait until no worker is busy with what must not go on behind our back."""
        while True:
            with talking_to(self.place):
                if not any(self.client.run(busy, about, on_error="ignore").values()):
                    return
            time.sleep(SECONDS_BETWEEN_QUESTIONS)

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield results in the order of the items; what is not done when the caller stops is taken back.

        Results are fetched as soon as they are there: those still with a worker that dies would be worked out again.
        """
        if self.client is None or self.ground is None:
            raise RuntimeError("a DaskEngine maps within its `with` block")
        name = f"culturekit-{function.__name__}-{uuid4().hex[:12]}"
        asked, answers = dict[int, Any](), dict[int, Any]()
        finished, handed_out = SimpleQueue[int](), 0
        try:
            for place in range(len(items)):
                while place not in answers:
                    until = min(len(items), place + self.at_once())
                    for later in range(handed_out, until):
                        task = Task(name, function, items[later], self.ground)
                        asked[later] = self.submit(task, later, finished, key=f"{name}-{later}")
                    handed_out = max(handed_out, until)
                    done = self.next_of(finished, asked)
                    answers[done] = self.answer(asked[done], items[done])
                    del asked[done]
                result: Result = result_in(answers.pop(place), self.ground)
                yield result
            self.wait_while(end_series, name)
        finally:
            self.take_back(asked.values())

    def at_once(self) -> int:
        """Say how many items are handed out before the first of them is back."""
        return AHEAD * self.workers

    def submit(self, task: Task[Item, Result], place: int, finished: "SimpleQueue[int]", *, key: str) -> Any:  # noqa: ANN401 - a future
        """Hand one item out, and have its place noted when it is done."""
        with talking_to(self.place):
            future = self.client.submit(work_on, task, key=key, pure=False)
        future.add_done_callback(partial(note, finished, place))
        return future

    def next_of(self, finished: "SimpleQueue[int]", asked: Mapping[int, Any]) -> int:
        """Wait for the next item that is done, as long as there is somebody to work."""
        alone_since = time.monotonic()
        while True:
            with suppress(Empty):
                place = finished.get(timeout=SECONDS_BETWEEN_LOOKS)
                if place in asked:
                    return place
            done = [place for place, future in asked.items() if future.done()]
            if done:
                return done[0]
            with talking_to(self.place):
                if self.client.nthreads():
                    alone_since = time.monotonic()
            if time.monotonic() - alone_since > self.options.wait:
                raise deserted(self.place, self.options.wait)

    def answer(self, future: Any, item: object) -> Any:  # noqa: ANN401 - a future, and whatever its task gives
        """Fetch what came of a task."""
        with talking_to(self.place):
            try:
                return future.result()
            except KilledWorker as error:
                raise dead(item) from error

    def take_back(self, futures: Iterable[Any]) -> None:
        """Cancel what nobody waits for any more, if there is a scheduler to hear it."""
        left = list(futures)
        if left and self.client is not None and self.client.status == "running":
            with suppress(CancelledError, OSError):
                self.client.cancel(left, force=True)

    @property
    def place(self) -> str:
        """Name the cluster."""
        return self.address or "the dask cluster of this machine"


def note(finished: "SimpleQueue[int]", place: int, _: object) -> None:
    """Note that an item is done."""
    finished.put(place)


def result_in(answer: Returned[Result] | Raised | None, ground: SharedGround) -> Result:
    """Take the result out of an answer, or raise what the item raised."""
    if isinstance(answer, Raised):
        answer.error.add_note(f"in a worker:\n{answer.place}")
        raise answer.error
    if answer is None:
        raise IntegrityError("removed while the workers needed it", where=str(ground.marker))
    return answer.result


def make_local(spec: Spec, *, workers: int | None, folder: Path) -> DaskEngine:
    """Make the engine with a cluster of this machine."""
    if spec.target:
        raise UsageError(f"{spec} is no engine", expected="dask, or an address such as tcp://scheduler:8786")
    return DaskEngine(folder=folder, workers=workers, options=spec.read(Options))


def make_remote(spec: Spec, *, workers: int | None, folder: Path) -> DaskEngine:
    """Make the engine for a cluster that is there already."""
    if workers is not None:
        raise UsageError("the workers of a cluster are those it has", found=f"--workers {workers}", where=str(spec))
    if not re.fullmatch(r"//[^/]+:\d+/?", spec.target):
        raise UsageError("not the address of a scheduler", where=str(spec), expected="tcp://HOST:PORT")
    return DaskEngine(f"{spec.name}:{spec.target}", folder=folder, options=spec.read(Options))
