"""The engine for more than one machine: shards as tasks of a dask cluster.

A shard is a function, an item, and the ground they stand on. Tasks of a dead worker are given to another by the
scheduler. An error travels back as data, so that it arrives as what it was.
"""

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Annotated, Any, Self, TypeVar
from uuid import uuid4

import dask
import msgspec
from distributed import CancelledError, Client, KilledWorker, LocalCluster

from culturekit.core.engines import (
    SINGLE_THREAD,
    Raised,
    SharedGround,
    Task,
    abandoned_in,
    available_cores,
    check_ground,
    end_series,
    lay_ground,
    result_of,
    work_on,
)
from culturekit.core.errors import IntegrityError, UpstreamUnavailable, UsageError
from culturekit.core.registry import Spec
from culturekit.version import install_line

# A dask cluster as an engine meets it: started here or found at an address, and what it means when it fails.

CONNECTING_SECONDS = 10

# How seldom processes look at themselves: four workers at rest, with all that keeps them, took .27 of a processor, and
# take .03 so.
AT_REST = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "10s",
}


@contextmanager
def cluster(processes: int) -> Iterator[LocalCluster]:
    """Start workers of this machine, one process each with one thread for arithmetic, and no web page."""
    with (
        dask.config.set(AT_REST),
        LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            host="127.0.0.1",
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            memory_limit=0,
            silence_logs=logging.ERROR,
            env=dict.fromkeys(SINGLE_THREAD, "1"),
        ) as local,
    ):
        yield local


@contextmanager
def connected(target: "str | LocalCluster") -> Iterator[Client]:
    """Connect to a scheduler."""
    try:
        client = Client(target, timeout=CONNECTING_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UpstreamUnavailable(
            "the dask scheduler cannot be reached",
            where=str(target),
            found=str(error),
            hint="Start one with `dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`; or leave "
            "--engine out.",
        ) from error
    with quiet(), client:
        yield client


@contextmanager
def quiet() -> Iterator[None]:
    """Keep dask from telling in tracebacks what is told in culturekit's words: it writes to stderr by itself."""
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def talking_to(address: str) -> Iterator[None]:
    """Say what it means when a scheduler stops to answer, or cannot read what it is sent."""
    try:
        yield
    except (CancelledError, OSError) as error:
        raise UpstreamUnavailable(
            "the connection to the scheduler was lost", where=address,
            found=f"{type(error).__name__}: {str(error).partition(chr(10))[0].rstrip('.')}",
            hint="What was done is kept, and the same command goes on from there.",
        ) from error  # fmt: skip
    except (ImportError, RuntimeError) as error:
        raise unready(error) from error


def unready(problem: Exception) -> UsageError:
    """Say that the machines of a cluster cannot even read what they are asked."""
    return UsageError(
        "the dask cluster cannot run culturekit",
        expected="the same packages on the scheduler and on all workers as here",
        found=f"{type(problem).__name__}: {problem}",
        hint=f"Install the same on all machines: {install_line('all')}",
    )


Item = TypeVar("Item")
Result = TypeVar("Result")

SECONDS_BETWEEN_LOOKS = 5.0  # How often a run that waits looks whether there are workers

AHEAD = 8  # Items per worker that are handed out before the first of them is back


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
        with talking_to(self.where):
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

    def __exit__(self, *_: object) -> None:
        """Let go of the cluster; items that are left do nothing any more, for the marker is gone."""
        self.stack.close()
        self.client = None

    def check_workers(self, ground: SharedGround) -> None:
        """Wait for the first worker, and ask all that are there what they do not share."""
        finished: SimpleQueue[int] = SimpleQueue()
        first = self.client.submit(check_ground, ground, key=f"culturekit-ready-{uuid4().hex}", pure=False)
        first.add_done_callback(lambda _: finished.put(0))
        self.next_of(finished, {0: first})
        answer = self.answer(first, "the first question")
        self.wait_while(abandoned_in, ground.marker.parent)
        with talking_to(self.where):  # a worker that cannot even read the question answers with an error
            every = self.client.run(check_ground, ground, on_error="return").values()
        for problem in (answer, *every):
            if isinstance(problem, Raised):
                raise problem.error
            if isinstance(problem, Exception) and not isinstance(problem, OSError):  # a worker may die meanwhile
                raise unready(problem) from problem

    def wait_while(self, busy: Callable[[Any], bool], about: object) -> None:
        """Wait until no worker is busy with what must not go on behind our back."""
        while True:
            with talking_to(self.where):
                if not any(self.client.run(busy, about, on_error="ignore").values()):
                    return
            time.sleep(0.2)

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
            for index in range(len(items)):
                while index not in answers:
                    until = min(len(items), index + AHEAD * self.workers)
                    for later in range(handed_out, until):
                        task = Task(name, function, items[later], self.ground)
                        asked[later] = self.submit(task, later, finished, key=f"{name}-{later}")
                    handed_out = max(handed_out, until)
                    done = self.next_of(finished, asked)
                    answers[done] = self.answer(asked[done], items[done])
                    del asked[done]
                if (answer := answers.pop(index)) is None:
                    raise IntegrityError("removed while the workers needed it", where=str(self.ground.marker))
                result: Result = result_of(answer)
                yield result
            self.wait_while(end_series, name)
        finally:
            self.take_back(asked.values())

    def submit(self, task: Task[Item, Result], number: int, finished: "SimpleQueue[int]", *, key: str) -> Any:  # noqa: ANN401 - a future
        """Hand one item out, and have its place noted when it is done."""
        with talking_to(self.where):
            future = self.client.submit(work_on, task, key=key, pure=False)
        future.add_done_callback(lambda _: finished.put(number))
        return future

    def next_of(self, finished: "SimpleQueue[int]", asked: Mapping[int, Any]) -> int:
        """Wait for the next item that is done, as long as there is somebody to work."""
        alone_since = time.monotonic()
        while True:
            with suppress(Empty):
                number = finished.get(timeout=SECONDS_BETWEEN_LOOKS)
                if number in asked:
                    return number
            done = [number for number, future in asked.items() if future.done()]
            if done:
                return done[0]
            with talking_to(self.where):
                if self.client.nthreads():
                    alone_since = time.monotonic()
            if time.monotonic() - alone_since > self.options.wait:
                raise UpstreamUnavailable(
                    f"the scheduler has had no worker for {self.options.wait:.0f} seconds", where=self.where,
                    hint="Start some with `dask worker ADDRESS --nthreads 1`, or wait longer: "
                    "--engine 'ADDRESS?wait=3600'.",
                )  # fmt: skip

    def answer(self, future: Any, item: object) -> Any:  # noqa: ANN401 - a future, and whatever its task gives
        """Fetch what came of a task."""
        with talking_to(self.where):
            try:
                return future.result()
            except KilledWorker as error:
                hint = "Their machines may be out of memory: start fewer workers on each."
                problem = "workers died again and again on one item"
                raise UpstreamUnavailable(problem, found=repr(item), hint=hint) from error

    def take_back(self, futures: Iterable[Any]) -> None:
        """Cancel what nobody waits for any more, if there is a scheduler to hear it."""
        left = list(futures)
        if left and self.client is not None and self.client.status == "running":
            with suppress(CancelledError, OSError):
                self.client.cancel(left, force=True)

    @property
    def where(self) -> str:
        """Name the cluster."""
        return self.address or "the dask cluster of this machine"


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
