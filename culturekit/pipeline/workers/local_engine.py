"""The default engine: processes of this machine.

Also one worker is a process of its own, with one thread for arithmetic: the same instructions in the same
order, whatever `--workers` says, and a worker that is killed costs its item and nothing else.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

from culturekit.errors import CultureKitError, UpstreamUnavailable, UsageError
from culturekit.pipeline.workers.shard_task import Raised, Returned
from culturekit.pipeline.workers.worker_process import WorkerDied, WorkerProcess, deaf

__all__ = ["LocalEngine", "available_cores"]

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_DEATHS = 3
"""An item whose workers die this often is itself the cause."""

FROM_OUTSIDE = frozenset({"SIGKILL", "SIGTERM", "SIGBUS", "SIGXCPU"})
"""What the system sends: out of memory, told to stop, a mapped file that cannot be read, out of its time."""

SHOWN = 300
"""Letters of such an item that an error shows."""


def available_cores() -> int:
    """Count the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalEngine:
    """Processes started at the first item and kept for the whole run.

    Example:
        >>> with ck.LocalEngine(2) as engine:
        ...     list(engine.map(abs, [-1, 2, -3]))
        [1, 2, 3]
    """

    def __init__(self, workers: int | None = None) -> None:
        """Decide how many; none is started yet."""
        if workers is not None and (not isinstance(workers, int) or workers < 0):
            raise UsageError("no such number of workers", expected="a whole number", found=repr(workers))
        self.workers = workers or available_cores()
        self.idle: list[WorkerProcess] = []

    def __enter__(self) -> Self:
        """Serve a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the workers go."""
        while self.idle:
            self.idle.pop().leave()

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield results in the order of the items; the item of a dead worker is given to another.

        When the results are no longer waited for, as after an error, workers are stopped where they are: what they
        keep is whole.
        """
        round_of_work = RoundOfWork(function, items, self.idle)
        try:
            round_of_work.start(min(self.workers, len(items)))
            for index in range(len(items)):
                yield round_of_work.result(index)
        finally:
            round_of_work.end()


class RoundOfWork(Generic[Item, Result]):
    """One pass over items: a thread for each worker hands it one item after another."""

    def __init__(self, function: Callable[[Item], Result], items: Sequence[Item], idle: list[WorkerProcess]) -> None:
        """Take the items; workers come from, and go back to, those that are idle."""
        self.function, self.items, self.idle = function, items, idle
        self.coming = iter(range(len(items)))
        self.left = len(items)
        self.ended = False
        self.change = threading.Condition()
        self.done: dict[int, Returned[Result] | Raised | BaseException] = {}
        self.busy: dict[threading.Thread, WorkerProcess | None] = {}

    def start(self, count: int) -> None:
        """Begin with so many workers."""
        for _ in range(count):
            thread = threading.Thread(target=self.feed, daemon=True)
            self.busy[thread] = self.idle.pop() if self.idle else None
        for thread in list(self.busy):
            thread.start()

    def result(self, index: int) -> Result:
        """Wait for one item; an error of the item is raised as it was."""
        with self.change:
            self.change.wait_for(lambda: index in self.done)
            outcome = self.done.pop(index)
        if isinstance(outcome, Returned):
            return outcome.result
        if isinstance(outcome, Raised):
            outcome.error.add_note(outcome.place)
            raise outcome.error
        raise outcome

    def end(self) -> None:
        """Keep the workers for the next round, but stop those that are still at work."""
        with self.change:
            self.ended = self.left > 0
            for worker in self.busy.values():
                if worker is not None and self.ended:
                    worker.stop()
        for thread in list(self.busy):
            if thread.ident is not None:
                thread.join()

    def feed(self) -> None:
        """Hand items to one worker until none is left or nobody waits."""
        thread = threading.current_thread()
        with deaf():
            while (index := self.next_index()) is not None:
                try:
                    outcome: Returned[Result] | Raised | BaseException = self.outcome(index, thread)
                except BaseException as error:
                    outcome = error
                with self.change:
                    self.done[index] = outcome
                    self.left -= 1
                    self.change.notify()
        with self.change:
            worker, self.busy[thread] = self.busy[thread], None
        if worker is not None and not self.ended:
            self.idle.append(worker)
        elif worker is not None:
            worker.leave()

    def next_index(self) -> int | None:
        """Take the next item that nobody has taken."""
        with self.change:
            return None if self.ended else next(self.coming, None)

    def outcome(self, index: int, thread: threading.Thread) -> Returned[Result] | Raised:
        """Have one item done, by another worker if the first dies of it."""
        signals: list[str] = []
        for _ in range(MAX_DEATHS):
            worker = self.worker_of(thread)
            try:
                return worker.work(self.function, self.items[index])
            except WorkerDied as death:
                signals.append(death.signal)
                with self.change:
                    self.busy[thread] = None
                worker.leave()
                if self.ended:
                    break
        raise dead(self.items[index], signals)

    def worker_of(self, thread: threading.Thread) -> WorkerProcess:
        """Give the worker of a thread; one is born if it has none."""
        worker = self.busy[thread] or WorkerProcess()
        with self.change:
            self.busy[thread] = worker
            if self.ended:
                worker.stop()
        return worker


def dead(item: object, signals: Sequence[str]) -> CultureKitError:
    """Say on which item workers keep dying, and what kills them: the system, or a mistake of ours."""
    from_outside = bool(signals) and set(signals) <= FROM_OUTSIDE
    kind = UpstreamUnavailable if from_outside else CultureKitError
    how = f", ended by {' and '.join(sorted({*signals} - {''}))}" if any(signals) else ""
    return kind(
        f"workers died {MAX_DEATHS} times on one item",
        found=shortened(repr(item)) + how,
        hint="The machine may be out of memory: try fewer --workers. A script of your own that starts workers needs "
        "its main part under `if __name__ == '__main__':`.",
    )


def shortened(text: str) -> str:
    """Keep the beginning of what may be pages."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text):,} characters)"
