"""The default engine: processes of this machine.

Also one worker is a process of its own, with one thread for arithmetic: the same instructions in the same
order, whatever `--workers` says, and a worker that is killed costs its item and nothing else.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self, TypeVar

from culturekit.errors import CultureKitError

__all__ = ["LocalEngine", "available_cores"]

Item = TypeVar("Item")
Result = TypeVar("Result")

SINGLE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
MAX_DEATHS = 3
"""An item whose workers die this often is itself the cause."""


def available_cores() -> int:
    """Count the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalEngine:
    """Processes started at the first item and kept for the whole run."""

    def __init__(self, workers: int | None = None) -> None:
        """Decide how many; none is started yet."""
        self.workers = workers or available_cores()
        self.pool: ProcessPoolExecutor | None = None
        self.children: set[BaseProcess] = set()

    def __enter__(self) -> Self:
        """Serve a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the workers go; after an error they are stopped where they are, for what they keep is whole."""
        if self.pool is not None:
            if kind is not None:
                for child in self.children:
                    child.terminate()
            self.pool.shutdown(wait=True, cancel_futures=True)
            self.pool = None

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield results in the order of the items; items of a dead worker are given to another."""
        futures: dict[int, Future[Result]] = {}
        for index, item in enumerate(items):
            deaths = 0
            while True:
                try:
                    if index not in futures:
                        missing = [later for later in range(index, len(items)) if later not in futures]
                        futures |= self.submit(function, items, missing)
                    result = futures.pop(index).result()
                    break
                except BrokenProcessPool as error:
                    deaths += 1
                    if deaths == MAX_DEATHS:
                        raise dead(item) from error
                    self.pool = None
                    futures = {later: future for later, future in futures.items() if succeeded(future)}
            yield result

    def submit(
        self, function: Callable[[Item], Result], items: Sequence[Item], indices: Sequence[int]
    ) -> dict[int, Future[Result]]:
        """Queue items; workers are born on the way, as many as are needed."""
        if self.pool is None:
            context = multiprocessing.get_context("spawn")
            self.pool = ProcessPoolExecutor(self.workers, mp_context=context, initializer=start_worker)
        before = set(multiprocessing.active_children())
        with single_threaded(), undisturbed():
            futures = {index: self.pool.submit(function, items[index]) for index in indices}
        self.children |= set(multiprocessing.active_children()) - before
        return futures


def dead(item: object) -> CultureKitError:
    """Say on which item workers keep dying, and what usually kills them."""
    return CultureKitError(
        f"workers died {MAX_DEATHS} times on one item",
        found=repr(item),
        hint="The machine may be out of memory: try fewer --workers. A script of your own that starts workers needs "
        "its main part under `if __name__ == '__main__':`.",
    )


def succeeded(future: Future[Result]) -> bool:
    """Tell whether a future already holds a result."""
    return future.done() and not future.cancelled() and future.exception() is None


@contextmanager
def single_threaded() -> Iterator[None]:
    """Set the environment that the workers are born with."""
    before = {name: os.environ.get(name) for name in SINGLE_THREAD}
    os.environ.update(dict.fromkeys(SINGLE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold Ctrl-C back while workers are born: one cut off in its first lines would complain of its parent.

    They are born deaf to it, because they take over what this thread holds back.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
    if pressed:
        signal.raise_signal(signal.SIGINT)


def start_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it, also when it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=end_with, args=(parent.sentinel,), daemon=True).start()


def end_with(sentinel: int) -> None:
    """Wait for the parent to be gone."""
    wait([sentinel])
    os._exit(1)
