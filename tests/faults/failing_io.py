"""Input and output that fails at its n-th step: for files of Python, of native code behind them, and of SQLite.

Steps are counted below one folder only: opening to write, writing, waiting for the disk, renaming, cutting. A file that
was opened here can be written by native code that never comes back to Python; so a fault at the opening of such a file
may also lead its writes to a device that is always full, or to one that fails.
"""

import builtins
import ctypes
import errno
import io
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

Step: TypeAlias = Literal["open", "write", "sync", "rename", "cut"]
# The step itself fails; half of a write is done first; or an opening succeeds and what is written then fails
Manner: TypeAlias = Literal["refuse", "short", "later"]

# What writes natively fail on: with ENOSPC, and with EIO (nothing is mapped at the beginning of memory)
FULL, FAILING = "/dev/full", "/proc/self/mem"

SQLITE_FULL, SQLITE_IOERR, SQLITE_CANTOPEN = 13, 10, 14
WRITE, CUT, SYNC = 2, 3, 4  # Where these stand among the functions of a file of SQLite


@dataclass(frozen=True)
class Fault:
    """Which step fails, counted from 1; how; with which error; and whether everything after it fails too."""

    at: int
    error: int = errno.ENOSPC
    manner: Manner = "refuse"
    lasting: bool = False


@dataclass
class FailingIO:
    """Counts steps below a folder, and lets one of them fail."""

    root: Path
    fault: Fault
    steps: list[tuple[Step, str]] = field(default_factory=list)
    hit: bool = False
    turn: threading.RLock = field(default_factory=threading.RLock)
    kept: list[object] = field(default_factory=list)

    def install(self) -> None:
        self.real_open, self.real_os_open = io.open, os.open
        builtins.open = io.open = self.open
        os.open = self.os_open
        os.write = self.before(os.write, "write", self.named)
        for name in ("fsync", "fdatasync"):
            setattr(os, name, self.before(getattr(os, name), "sync", self.named))
        for name in ("rename", "replace", "link"):
            setattr(os, name, self.before(getattr(os, name), "rename", str))
        for name in ("ftruncate", "truncate"):
            setattr(os, name, self.before(getattr(os, name), "cut", self.named))
        self.before_sqlite()

    def fails(self, step: Step, name: str) -> bool:
        with self.turn:
            if not self.within(name):
                return False
            self.steps.append((step, name))
            due = len(self.steps) == self.fault.at or (self.fault.lasting and len(self.steps) > self.fault.at)
            self.hit = self.hit or due
            return due

    def within(self, name: str) -> bool:
        return Path(name).absolute().is_relative_to(self.root)

    def named(self, target: object) -> str:
        return str(Path(f"/proc/self/fd/{target}").readlink()) if isinstance(target, int) else str(target)

    def raised(self, name: str) -> OSError:
        return OSError(self.fault.error, os.strerror(self.fault.error), name)

    def before(self, function: Callable[..., Any], step: Step, named: Callable[[Any], str]) -> Callable[..., Any]:
        def counted(target: Any, *more: Any, **options: Any) -> Any:
            name = named(target)
            if self.fails(step, name):
                if step == "write" and self.fault.manner == "short":
                    return function(target, more[0][: len(more[0]) // 2])
                raise self.raised(name)
            return function(target, *more, **options)

        return counted

    def os_open(self, path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and self.fails("open", os.fspath(path)):
            raise self.raised(os.fspath(path))
        return self.real_os_open(path, flags, *more, **options)

    def open(self, file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
        if isinstance(file, int) or not set(mode) & set("wax+"):
            return self.real_open(file, mode, *more, **options)
        failing = self.fails("open", os.fspath(file))
        if failing and self.fault.manner != "later":
            raise self.raised(os.fspath(file))
        opened = self.real_open(file, mode, *more, **options)
        if failing:
            device = self.real_os_open(FULL if self.fault.error == errno.ENOSPC else FAILING, os.O_WRONLY)
            os.dup2(device, opened.fileno())
            os.close(device)
        return opened

    def before_sqlite(self) -> None:
        """Stand between SQLite and its files, which are all taken to lie below the folder."""
        import _sqlite3

        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.POINTER(FileSystem)
        system = library.sqlite3_vfs_find(None).contents
        really_open = XOpen(system.functions[0])

        def opened(vfs: int, name: int | None, file: int, flags: int, out: int) -> int:
            path = os.fsdecode(ctypes.string_at(name)) if name else "temporary"
            folder = str(self.root / f"sqlite {Path(path).name}")
            if self.fails("open", folder):
                return SQLITE_CANTOPEN
            code = int(really_open(vfs, name, file, flags, out))
            if code == 0:
                self.before_file(File.from_address(file), folder)
            return code

        self.kept.append(standing := XOpen(opened))
        system.functions[0] = ctypes.cast(standing, ctypes.c_void_p).value

    def before_file(self, file: "File", name: str) -> None:
        if not file.methods:
            return
        methods = Methods.from_buffer_copy(Methods.from_address(file.methods))
        really_write, really_sync = XWrite(methods.functions[WRITE]), XSync(methods.functions[SYNC])
        really_cut = XTruncate(methods.functions[CUT])
        code = SQLITE_FULL if self.fault.error == errno.ENOSPC else SQLITE_IOERR

        def write(file: int, content: int, size: int, offset: int) -> int:
            if self.fails("write", name):
                if self.fault.manner == "short":
                    really_write(file, content, size // 2, offset)
                return code
            return int(really_write(file, content, size, offset))

        def cut(file: int, size: int) -> int:
            return SQLITE_IOERR if self.fails("cut", name) else int(really_cut(file, size))

        def sync(file: int, flags: int) -> int:
            return SQLITE_IOERR if self.fails("sync", name) else int(really_sync(file, flags))

        standing = [(WRITE, XWrite(write)), (CUT, XTruncate(cut)), (SYNC, XSync(sync))]
        for at, function in standing:
            methods.functions[at] = ctypes.cast(function, ctypes.c_void_p).value
        self.kept += [methods, *standing]
        file.methods = ctypes.addressof(methods)


class FileSystem(ctypes.Structure):
    """The beginning of `sqlite3_vfs`; `functions` begin with xOpen."""

    _fields_ = [
        ("version", ctypes.c_int), ("file_size", ctypes.c_int), ("longest_path", ctypes.c_int),
        ("next", ctypes.c_void_p), ("name", ctypes.c_char_p), ("data", ctypes.c_void_p),
        ("functions", ctypes.c_void_p * 12),
    ]  # fmt: skip


class Methods(ctypes.Structure):
    """`sqlite3_io_methods`: a version, then xClose, xRead, xWrite, xTruncate, xSync and others."""

    _fields_ = [("version", ctypes.c_int), ("functions", ctypes.c_void_p * 18)]


class File(ctypes.Structure):
    """The beginning of `sqlite3_file`."""

    _fields_ = [("methods", ctypes.c_void_p)]


Address = ctypes.c_void_p
XOpen = ctypes.CFUNCTYPE(ctypes.c_int, Address, Address, Address, ctypes.c_int, Address)
XWrite = ctypes.CFUNCTYPE(ctypes.c_int, Address, Address, ctypes.c_int, ctypes.c_int64)
XTruncate = ctypes.CFUNCTYPE(ctypes.c_int, Address, ctypes.c_int64)
XSync = ctypes.CFUNCTYPE(ctypes.c_int, Address, ctypes.c_int)
