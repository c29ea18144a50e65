"""The engines that culturekit knows by name: who works on the shards of a stage."""

import ctypes
import multiprocessing
import os
import platform
import signal
import threading
import time
import traceback
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Generic, Self, TypeVar
from uuid import uuid4

from culturekit.core.atomic import outside_failure, system_error
from culturekit.core.errors import CultureKitError, UpstreamUnavailable, UsageError
from culturekit.core.plugins import Contract, Plugin, guard_exit
from culturekit.core.registry import Entry, Registry, Spec
from culturekit.core.stage import Engine
from culturekit.version import VERSION, install_line

_LARGE_BLOCK = 4 * 2**20
# What glibc's mallopt calls the number of free bytes from which on the end of a heap is given back, and the number of
# bytes from which on a block is taken from the system.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


@cache
def settle_heaps() -> None:
    """Have the C library take large blocks from the system and give them back, and keep small ones for what comes.

    By itself glibc soon keeps blocks of up to 32 MB in the heap of each thread: sixteen readers of pictures held 1.1 GB
    so. Workers of dask give back whatever has 64 KB: each array of a picture that is drawn was taken from the system
    anew, for half as much time of the processor again.
    """
    settle = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if settle is not None:
        settle(_MMAP_THRESHOLD, _LARGE_BLOCK)
        settle(_TRIM_THRESHOLD, 2 * _LARGE_BLOCK)


# What a worker on another machine must share with the one who asks: versions, folders, and that one still asks.
#
# The asker puts a marker file into the folder that it writes to. Before an item, a worker makes sure that it reads
# the same marker there. When the asker is gone, so is the marker, and items that are left do nothing.

# What may decide bytes, and what carries them.
_PACKAGES = ("distributed", "numpy", "open_clip_torch", "pillow", "polars", "scipy", "torch", "transformers")

# Seconds until a file that another machine wrote must be seen; shared file systems remember for a while what was not
# there.
_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class SharedGround:
    """What all workers share: the folder where the command runs, the marker in the one it writes to, versions.

    `patience` is how many seconds a worker looks for the marker.
    """

    folder: Path
    marker: Path
    token: str
    versions: tuple[tuple[str, str], ...]
    patience: float = _PATIENCE


def lay_ground(folder: Path) -> SharedGround:
    """Put a fresh marker into a folder, which is made if it is not there; the caller removes the marker.

    Markers of killed runs of this machine are removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    prefix = f".culturekit-engine-{platform.node()}-"
    for old in sorted(folder.glob(f"{prefix}*")):
        pid = old.name.removeprefix(prefix).partition("-")[0]
        if pid.isdecimal() and not alive(int(pid)):
            old.unlink(missing_ok=True)
    token = uuid4().hex
    marker = folder.resolve() / f"{prefix}{os.getpid()}-{token[:8]}"
    marker.write_text(token, encoding="ascii")
    return SharedGround(Path.cwd(), marker, token, tuple(versions_here().items()))


def alive(pid: int) -> bool:
    """Tell whether a process of this machine is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


@cache
def versions_here() -> Mapping[str, str]:
    """List the versions of what may decide bytes; a package that is not installed has none."""
    found = {"python": ".".join(platform.python_version_tuple()[:2]), "culturekit": VERSION}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def stand_on(ground: SharedGround) -> bool:
    """Go where the asker is; False when it is gone, an error when something is not shared."""
    _check_shared(ground)
    if Path.cwd() != ground.folder:
        try:
            os.chdir(ground.folder)
        except OSError as error:
            raise _not_shared(ground.folder, error) from error
    return ground.marker.exists()


@cache
def _check_shared(ground: SharedGround) -> None:
    """Check once per process that versions are the asker's, else the bytes could differ, and that the folder is."""
    here = versions_here()
    differ = [(name, asked) for name, asked in ground.versions if here[name] != asked]
    if differ:
        raise UsageError(
            "a worker has other versions than the command, so its results could differ",
            where=f"worker on {platform.node()}", expected=", ".join(f"{name} {asked}" for name, asked in differ),
            found=", ".join(f"{name} {here[name]}" for name, _ in differ),
            hint=f"Install the same on all machines: {install_line('all')}",
        )  # fmt: skip
    end = time.monotonic() + ground.patience
    while True:
        try:
            if ground.marker.read_text(encoding="ascii") == ground.token:
                return
            problem = OSError("another file of the same name")
        except OSError as error:
            problem = error
        if time.monotonic() >= end:
            raise _not_shared(ground.marker.parent, problem) from problem
        time.sleep(0.2)


def _not_shared(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        "a worker does not see the folder of the command", where=f"{folder} on {platform.node()}",
        expected="a file system that all machines share, mounted at the same path",
        found=error.strerror or str(error),
        hint="Write to a shared folder (--out, --workdir), start the command in one, or use --engine local.",
    )  # fmt: skip


# A shard as a task for a worker elsewhere: what is to be done, and what came of it, errors included.

Item = TypeVar("Item")
Result = TypeVar("Result")

# Held by the item at work: shards expect a process of their own, also on a worker with several threads.
ONE_AT_A_TIME = threading.Lock()


AT_WORK: list[tuple[str, Path]] = []  # The series and the marker of the item at work in this process

# The series of which no more items are begun. When a worker dies in the moment in which its result is fetched, the
# scheduler has the item done again, though nobody waits for it.
ENDED: set[str] = set()


@dataclass(frozen=True, slots=True)
class Task(Generic[Item, Result]):
    """An item and what is to be done with it; `series` names the run over items that it is part of."""

    series: str
    function: Callable[[Item], Result]
    item: Item
    ground: SharedGround


@dataclass(frozen=True, slots=True)
class Returned(Generic[Result]):
    """What a function gave back."""

    result: Result


@dataclass(frozen=True, slots=True)
class Raised:
    """What a function raised, and where."""

    error: Exception
    traceback: str


def work_on(task: Task[Item, Result]) -> Returned[Result] | Raised | None:
    """Work on an item, in a worker; None when nobody waits for it any more."""
    settle_heaps()
    with ONE_AT_A_TIME:
        AT_WORK.append((task.series, task.ground.marker))
        try:
            wanted = task.series not in ENDED and stand_on(task.ground)
            return Returned(task.function(task.item)) if wanted else None
        except BaseException as error:
            return _raised(error)
        finally:
            AT_WORK.clear()


def end_series(series: str) -> bool:
    """Begin no more items of a series in this worker; tell whether one is still at work."""
    ENDED.add(series)
    return any(series == at_work for at_work, _ in list(AT_WORK))


def abandoned_in(folder: Path) -> bool:
    """Tell whether this worker still works for somebody who wrote to a folder and is gone."""
    return any(marker.parent == folder and not marker.exists() for _, marker in list(AT_WORK))


def check_ground(ground: SharedGround) -> Raised | None:
    """Say what a worker does not share with the command, if anything."""
    try:
        _check_shared(ground)
    except CultureKitError as error:
        return Raised(error, "")
    return None


def result_of(answer: Returned[Result] | Raised) -> Result:
    """Take the result out of an answer, or raise what the item raised, with where."""
    if isinstance(answer, Raised):
        if answer.traceback:
            answer.error.add_note(f"in a worker:\n{answer.traceback}")
        raise answer.error
    return answer.result


def _raised(error: BaseException) -> Raised:
    """Give an error, and where, in a form that crosses process borders; what the system refused stays just that."""
    sent = system_error(error) or error
    unknown = CultureKitError(f"a shard failed: {type(error).__name__}: {error}")
    try:
        ForkingPickler.loads(ForkingPickler.dumps(sent))  # made anew from its parts, as on the other side
    except Exception:
        return Raised(outside_failure(error) or unknown, traceback.format_exc())
    return Raised(sent if isinstance(sent, Exception) else unknown, traceback.format_exc())


# One worker of this machine: a process that is given an item, and whose answer or death is heard at once.

SINGLE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")


class _WorkerDied(Exception):
    """The process ended before it answered; `signal` names what ended it, if it was a signal."""

    def __init__(self, code: int | None) -> None:
        super().__init__(f"exit code {code}")
        self.signal = signal.Signals(-code).name if code is not None and -code in set(signal.Signals) else ""


class _WorkerProcess:
    """A process with one thread for arithmetic that does one item after another and ends with its parent."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _deaf(), _single_threaded():
            self.process.start()
        theirs.close()

    def answer(self) -> Returned[Any] | Raised:
        try:
            reply: Returned[Any] | Raised = self.connection.recv()
        except (EOFError, OSError) as error:
            self.process.join()
            code = self.process.exitcode
            self.leave()
            raise _WorkerDied(code) from error
        return reply

    def leave(self) -> None:
        """Tell it that nothing more comes, and wait until it has gone."""
        self.connection.close()
        self.process.join()
        self.process.close()


@contextmanager
def _single_threaded() -> Iterator[None]:
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
def _deaf() -> Iterator[None]:
    """Hold Ctrl-C back in this thread, and in the workers that are born meanwhile.

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


def _serve(connection: Connection) -> None:
    """Do what comes until nothing more comes; Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    guard_exit()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    reply: Returned[Any] | Raised
    while True:
        try:
            function, item = connection.recv()
        except EOFError:
            return
        except Exception as error:
            function, item = _raise, error
        try:
            reply = Returned(function(item))
        except BaseException as error:
            reply = _raised(error)
        try:
            packed = ForkingPickler.dumps(reply)
        except Exception as error:  # one that cannot be packed becomes an error that says so
            packed = ForkingPickler.dumps(_raised(error))
        connection.send_bytes(packed)


def _raise(error: Exception) -> None:
    """Raise what came of unpacking an item in the place of the item."""
    raise error


def _end_with(sentinel: int) -> None:
    """Wait for the parent to be gone."""
    wait([sentinel])
    os._exit(1)


# The default engine: processes of this machine.
#
# Also one worker is a process of its own, with one thread for arithmetic: the same instructions in the same order,
# whatever `--workers` says, and a worker that is killed costs its item and nothing else.

_MAX_DEATHS = 3  # An item whose workers die this often is itself the cause

# What the system sends: out of memory, told to stop, a mapped file that cannot be read, out of its time.
_FROM_OUTSIDE = frozenset({"SIGKILL", "SIGTERM", "SIGBUS", "SIGXCPU"})

_SHOWN = 300  # Letters of such an item that an error shows


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
        self.idle: list[_WorkerProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self.idle:
            self.idle.pop().leave()

    def given(self, request: memoryview) -> _WorkerProcess:
        """Give an item to a worker that is idle, or to a new one."""
        worker = self.idle.pop() if self.idle else _WorkerProcess()
        with suppress(OSError):  # of one that is gone the answer tells
            worker.connection.send_bytes(request)
        return worker

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield results in the order of the items; the item of a dead worker is given to another.

        When the results are no longer waited for, as after an error, workers are stopped where they are: what they
        keep is whole.
        """
        waiting, busy = deque(range(len(items))), dict[Any, tuple[_WorkerProcess, int]]()
        done, deaths = dict[int, Returned[Result] | Raised](), defaultdict[int, list[str]](list)
        try:
            for index in range(len(items)):
                while index not in done:
                    while waiting and len(busy) < self.workers:
                        number = waiting.popleft()
                        try:
                            request = ForkingPickler.dumps((function, items[number]))
                        except Exception as error:
                            done[number] = Raised(error, traceback.format_exc())
                            continue
                        worker = self.given(request)
                        busy[worker.connection] = worker, number
                    for ready in wait(list(busy)):
                        worker, number = busy.pop(ready)
                        try:
                            done[number] = worker.answer()
                            self.idle.append(worker)
                        except _WorkerDied as death:
                            deaths[number].append(death.signal)
                            if len(deaths[number]) == _MAX_DEATHS:
                                done[number] = Raised(_dead(items[number], deaths[number]), "")
                            else:
                                waiting.appendleft(number)
                yield result_of(done.pop(index))
        finally:
            for worker, _ in busy.values():
                worker.process.terminate()
            for worker, _ in busy.values():
                worker.leave()


def _dead(item: object, signals: Sequence[str]) -> CultureKitError:
    """Say on which item workers keep dying, and what kills them: the system, or a mistake of ours."""
    from_outside = bool(signals) and set(signals) <= _FROM_OUTSIDE
    kind = UpstreamUnavailable if from_outside else CultureKitError
    how = f", ended by {' and '.join(sorted({*signals} - {''}))}" if any(signals) else ""
    text = repr(item)
    return kind(
        f"workers died {_MAX_DEATHS} times on one item",
        found=(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)") + how,
        hint="The machine may be out of memory: try fewer --workers. A script of your own that starts workers needs "
        "its main part under `if __name__ == '__main__':`.",
    )


class _HeldEngine:
    """An engine of another package: what an item raises is the item's, what the engine raises is the engine's."""

    def __init__(self, engine: Engine, plugin: Plugin) -> None:
        """Make sure that it has what engines have."""
        self.engine, self.plugin = engine, plugin
        with plugin.blamed("failed at workers"):
            self.workers = engine.workers
        if not isinstance(self.workers, int) or self.workers < 1:
            raise plugin.failure("has something else as workers", expected="at least 1", found=repr(self.workers))

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        count = 0
        try:
            for result in self.engine.map(function, items):
                count += 1
                yield result
        except Exception as error:
            item = getattr(getattr(function, "func", function), "__code__", None)
            of_item = any(frame.f_code is item for frame, _ in traceback.walk_tb(error.__traceback__))
            if of_item or not self.plugin.raised(error):
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
def entered(engine: AbstractContextManager[Engine], plugin: Plugin) -> Iterator[_HeldEngine]:
    """Serve a block; what fails within it is not the plugin's."""
    with ExitStack() as stack:
        with plugin.blamed("failed to begin"):
            begun = stack.enter_context(engine)
        yield _HeldEngine(begun, plugin)


_NEEDS = ("workers", "folder")
_REMOTE = "the dask cluster whose scheduler is at this address"
ENGINES: Registry[AbstractContextManager[Engine]] = Registry(
    "engine",
    [
        Entry("local", "culturekit.core.engines:local", "processes of this machine", needs=_NEEDS),
        Entry(
            "dask", "culturekit.core.dask_engine:make_local", "a dask cluster of this machine, for the time of the run",
            extra="scale", needs=_NEEDS,
        ),
        *(
            Entry(scheme, "culturekit.core.dask_engine:make_remote", _REMOTE, extra="scale", needs=_NEEDS)
            for scheme in ("tcp", "tls")
        ),
    ],
    point="engine", contract=EngineContract((Engine,)),
)  # fmt: skip


def engine_for(text: str, *, workers: int | None, folder: Path) -> AbstractContextManager[Engine]:
    """Make the engine of a command; `folder` is where the command writes, which all workers have to see."""
    return ENGINES.make(text, workers=workers, folder=folder)


def local(spec: Spec, *, workers: int | None, folder: Path) -> LocalEngine:
    """Make the default engine; its workers see what this process sees, so that the folder does not matter."""
    del folder
    spec.refuse_options()
    return LocalEngine(workers)
