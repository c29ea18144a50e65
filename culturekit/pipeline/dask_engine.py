"""The engine for more than one machine: shards as tasks of a dask cluster.

A shard is a function, an item, and the ground they stand on. Tasks of a dead worker are given to another by the
scheduler. An error travels back as data, so that it arrives as what it was.
"""

import logging
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self, TypeVar
from uuid import uuid4

import msgspec
from distributed import CancelledError, Client, KilledWorker, LocalCluster
from distributed.comm import CommClosedError

from culturekit.errors import CultureKitError, IntegrityError, UpstreamUnavailable, UsageError
from culturekit.pipeline.local_engine import SINGLE_THREAD, available_cores
from culturekit.pipeline.shard_task import Raised, Returned, Task, check_ground, work_on
from culturekit.pipeline.shared_ground import SharedGround, lay_ground
from culturekit.registry import Spec

__all__ = ["DaskEngine", "Options", "make_local", "make_remote"]

Item = TypeVar("Item")
Result = TypeVar("Result")

CONNECTING_SECONDS = 10
SECONDS_BETWEEN_LOOKS = 5.0
"""How often a run that waits looks whether there are workers."""

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
        return max(1, len(self.client.nthreads())) if self.client else self.processes

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
        first = self.client.submit(check_ground, ground, key=f"culturekit-ready-{uuid4().hex}", pure=False)
        found = [self.answer(first, "the first question"), *self.ask_all(ground)]
        for problem in found:
            if isinstance(problem, Raised):
                raise problem.error
            if isinstance(problem, Exception):
                raise unready(problem) from problem

    def ask_all(self, ground: SharedGround) -> list[Raised | Exception | None]:
        """Ask every worker; one that cannot even read the question answers with an error."""
        return list(self.client.run(check_ground, ground, on_error="return").values())

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield results in the order of the items; what is not done when the caller stops is taken back."""
        if self.client is None or self.ground is None:
            raise RuntimeError("a DaskEngine maps within its `with` block")
        name = f"culturekit-{function.__name__}-{uuid4().hex[:12]}"
        left, waiting = enumerate(items), deque[tuple[Item, Any]]()
        try:
            while True:
                for place, item in islice(left, max(0, AHEAD * self.workers - len(waiting))):
                    task = Task(function, item, self.ground)
                    waiting.append((item, self.client.submit(work_on, task, key=f"{name}-{place}", pure=False)))
                if not waiting:
                    return
                item, future = waiting[0]
                result: Result = result_in(self.answer(future, item), self.ground)
                waiting.popleft()
                yield result
        finally:
            self.client.cancel([future for _, future in waiting], force=True)

    def answer(self, future: Any, item: object) -> Any:  # noqa: ANN401 - a future, and whatever its task gives
        """Wait for a task, as long as there is somebody to work on it."""
        alone_since = time.monotonic()
        while True:
            try:
                return future.result(timeout=SECONDS_BETWEEN_LOOKS)
            except TimeoutError:
                if self.client.nthreads():
                    alone_since = time.monotonic()
                elif time.monotonic() - alone_since > self.options.wait:
                    raise deserted(self.place, self.options.wait) from None
            except KilledWorker as error:
                raise dead(item) from error
            except (CancelledError, CommClosedError) as error:
                raise lost(self.place) from error
            except (ImportError, RuntimeError) as error:
                raise unready(error) from error

    @property
    def place(self) -> str:
        """Name the cluster."""
        return self.address or "the dask cluster of this machine"


def result_in(answer: Returned[Result] | Raised | None, ground: SharedGround) -> Result:
    """Take the result out of an answer, or raise what the item raised."""
    if isinstance(answer, Raised):
        answer.error.add_note(f"in a worker:\n{answer.place}")
        raise answer.error
    if answer is None:
        raise IntegrityError("removed while the workers needed it", where=str(ground.marker))
    return answer.result


@contextmanager
def cluster(processes: int) -> Iterator[LocalCluster]:
    """Start workers of this machine, one process each with one thread for arithmetic, and no web page."""
    with LocalCluster(
        n_workers=processes,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        host="127.0.0.1",
        memory_limit=0,
        silence_logs=logging.ERROR,
        env=dict.fromkeys(SINGLE_THREAD, "1"),
    ) as made:
        yield made


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
    with client:
        yield client


def dead(item: object) -> CultureKitError:
    """Say on which item workers keep dying, and what usually kills them."""
    return CultureKitError(
        "workers died again and again on one item",
        found=repr(item),
        hint="Their machines may be out of memory: start fewer workers on each.",
    )


def deserted(place: str, seconds: float) -> UpstreamUnavailable:
    """Say that nobody is there to work."""
    return UpstreamUnavailable(
        f"the scheduler has had no worker for {seconds:.0f} seconds",
        where=place,
        hint="Start some with `dask worker ADDRESS --nthreads 1`, or wait longer: --engine 'ADDRESS?wait=3600'.",
    )


def lost(place: str) -> UpstreamUnavailable:
    """Say that the scheduler is gone."""
    return UpstreamUnavailable(
        "the connection to the scheduler was lost",
        where=place,
        hint="What was done is kept, and the same command goes on from there.",
    )


def unready(problem: Exception) -> UsageError:
    """Say that the machines of a cluster cannot even read what they are asked."""
    return UsageError(
        "the dask cluster cannot run culturekit",
        expected="the same packages on the scheduler and on all workers as here",
        found=f"{type(problem).__name__}: {problem}",
        hint="Install the same on all machines: pip install -c constraints.txt 'culturekit[all]'",
    )


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
