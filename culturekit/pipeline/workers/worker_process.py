"""One worker of this machine: a process that is given an item, and whose answer or death is heard at once."""

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import TypeVar

from culturekit.pipeline.workers.shard_task import Raised, Returned, sendable

__all__ = ["SINGLE_THREAD", "WorkerDied", "WorkerProcess", "deaf"]

Item = TypeVar("Item")
Result = TypeVar("Result")

SINGLE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")

BIRTH = threading.Lock()
"""Workers are born one at a time: each birth changes the environment of the process for a moment."""


class WorkerDied(Exception):
    """The process ended before it answered; `signal` names what ended it, if it was a signal."""

    def __init__(self, code: int | None) -> None:
        """Read the signal from the exit code of a process."""
        super().__init__(f"exit code {code}")
        self.signal = signal.Signals(-code).name if code is not None and -code in set(signal.Signals) else ""


class WorkerProcess:
    """A process with one thread for arithmetic that does one item after another and ends with its parent.

    It is born in a thread that is `deaf`.
    """

    def __init__(self) -> None:
        """Start it."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self.connection = ours
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        with BIRTH, single_threaded():
            self.process.start()
        theirs.close()

    def work(self, function: Callable[[Item], Result], item: Item) -> Returned[Result] | Raised:
        """Have one item done and wait for what comes of it.

        Raises:
            WorkerDied: The process is gone, with nothing else on its hands than this item.
        """
        try:
            request = ForkingPickler.dumps((function, item))
        except Exception as error:
            return Raised(error, traceback.format_exc())
        try:
            self.connection.send_bytes(request)
            reply: Returned[Result] | Raised = self.connection.recv()
        except (EOFError, OSError) as error:
            self.connection.close()
            self.process.join()
            raise WorkerDied(self.process.exitcode) from error
        return reply

    def stop(self) -> None:
        """End it where it is: what it keeps is whole."""
        self.process.terminate()

    def leave(self) -> None:
        """Tell it that nothing more comes, and wait until it has gone."""
        self.connection.close()
        self.process.join()
        self.process.close()


@contextmanager
def single_threaded() -> Iterator[None]:
    """Set the environment that a worker is born with."""
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
def deaf() -> Iterator[None]:
    """Hold Ctrl-C back in this thread, and in the workers that are born in it: the main thread hears it.

    A worker cut off in its first lines would complain of its parent. The tracker of multiprocessing lets Ctrl-C
    through again when it is started, and is therefore started before.
    """
    resource_tracker.ensure_running()
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(connection: Connection) -> None:
    """Do what comes until nothing more comes; Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=end_with, args=(parent.sentinel,), daemon=True).start()
    while True:
        try:
            function, item = connection.recv()
        except EOFError:
            return
        except Exception as error:
            connection.send_bytes(sealed(Raised(sendable(error), traceback.format_exc())))
            continue
        connection.send_bytes(sealed(answer(function, item)))


def answer(function: Callable[[Item], Result], item: Item) -> Returned[Result] | Raised:
    """Do one item."""
    try:
        return Returned(function(item))
    except BaseException as error:
        return Raised(sendable(error), traceback.format_exc())


def sealed(reply: Returned[Result] | Raised) -> memoryview:
    """Pack a reply; one that cannot be packed becomes an error that says so."""
    try:
        return ForkingPickler.dumps(reply)
    except Exception as error:
        return ForkingPickler.dumps(Raised(sendable(error), traceback.format_exc()))


def end_with(sentinel: int) -> None:
    """Wait for the parent to be gone."""
    wait([sentinel])
    os._exit(1)
