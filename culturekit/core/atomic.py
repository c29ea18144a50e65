"""Files that are there whole or not at all, also after a power cut."""

import errno
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from culturekit.core.errors import CultureKitError, UpstreamUnavailable, UsageError

# Failures of the outside, as what they are: a full disk, a refused file, a service that is gone.
#
# ```
# what is raised anywhere -> the system's own error, if there is one -> UpstreamUnavailable (exit code 3), in its words
# ```
# Polars, NumPy and SQLite raise types of their own for what the system refused, and tell its number in the text
# at most.
# Whoever writes or reads files makes them OSErrors again; whoever runs a stage or a command explains what is left.

# How libraries that are written in Rust, or wrap what Python raised, tell the number of the system's error.
NUMBER = re.compile(r"\(os error (\d+)\)|\[Errno (\d+)\]|\bOs \{ code: (\d+),")

# These say that a name leads to no such file, not that the machine failed.
NAMING = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ENAMETOOLONG, errno.ELOOP}

# What a name that leads to the other kind means: whoever typed it can mend it, and waiting mends nothing.
MISNAMED: Mapping[int, str] = {
    errno.ENOTDIR: "a file stands where a folder is expected",
    errno.EISDIR: "a folder stands where a file is expected",
    errno.ENAMETOOLONG: "a name is longer than the disk allows",
    errno.EEXIST: "something of that name is there already",
}

# These say nothing about the file that was to be read: the same file may be read tomorrow.
FAILING = {errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ENODEV}

FULL = {errno.ENOSPC, errno.EDQUOT}
ROOM = "Make room"
HINTS: Mapping[int, str] = {
    errno.ENOSPC: ROOM,
    errno.EDQUOT: ROOM,
    errno.EFBIG: "Allow larger files (ulimit -f)",
    errno.EMFILE: "Allow more open files (ulimit -n), or use fewer --workers",
    errno.ENFILE: "Close other programs, or use fewer --workers",
    errno.ENOMEM: "Free memory, or use fewer --workers",
    errno.EACCES: "Check who may read and write there",
    errno.EPERM: "Check who may read and write there",
    errno.EROFS: "Choose a place that can be written",
    errno.EIO: "Check the disk",
}
ONCE_MORE = "run the same command again: it goes on from here. What was finished before is intact."


def system_error(error: BaseException, path: Path | None = None) -> OSError | None:
    """Give the error of the system that another stands for, with its number; `path` is the file, if none is named."""
    if isinstance(error, OSError) and error.errno is not None:
        number = error.errno
        if error.filename is not None or path is None or type(error).__module__ != "builtins":
            return error
    elif isinstance(error, MemoryError):
        number = errno.ENOMEM
    elif isinstance(error, CultureKitError) or not (found := NUMBER.search(str(error))):
        return None
    else:
        number = int(next(filter(None, found.groups())))
    return OSError(number, os.strerror(number), *(() if path is None else (str(path),)))


@contextmanager
def system_errors(path: Path) -> Iterator[None]:
    """Raise what the system refuses while a file is written as its own error, whatever a library makes of it."""
    try:
        yield
    except BaseException as error:
        refused = system_error(error, path)
        if refused is None or refused is error:
            raise
        raise refused from error


def raise_system_error(error: BaseException, path: Path) -> None:
    """Raise what the machine refused while a file was read; return where the file itself is to blame.

    Raises:
        OSError: the disk fails, or the system allows no more files or memory.
    """
    found = system_error(error, path)
    if found is not None and found.errno not in NAMING:
        raise found from error


def machine_fails(error: OSError) -> bool:
    """Tell whether a file could not be read for what the machine lacks, not for what the file is."""
    return error.errno in FAILING


def outside_failure(error: BaseException, *, where: Path | str = "") -> UpstreamUnavailable | UsageError | None:
    """Explain a failure of the outside in its own words; None where the failure is ours, or is explained already."""
    if isinstance(error, CultureKitError) or (not isinstance(error, Exception | MemoryError) and not panics(error)):
        return None
    found = system_error(error)
    if found is None and not isinstance(error, OSError):
        return None
    if found is None or type(found).__module__ != "builtins" or isinstance(found, ConnectionError | TimeoutError):
        words = str(error) or "no reason was given"
        return UpstreamUnavailable(
            f"{type(error).__name__}: {words}", where=str(where), hint=f"When it answers again, {ONCE_MORE}"
        )
    where_found = os.fsdecode(found.filename) if isinstance(found.filename, str | bytes) else where
    if misnamed := MISNAMED.get(found.errno or 0):
        return UsageError(misnamed, where=str(where_found), hint="Name another place.")
    first, room = HINTS.get(found.errno or 0), ""
    if found.errno in FULL and (found.filename or isinstance(where, Path)):
        path = Path(where_found).absolute()
        free = shutil.disk_usage(next(folder for folder in (path, *path.parents) if folder.exists())).free
        room = f"{free:,} bytes free on that disk"
    return UpstreamUnavailable(
        f"the system refused: {found.strerror or os.strerror(found.errno or 0)}",
        where=str(where_found),
        found=room,
        hint=f"{first or 'Mend that'}, then {ONCE_MORE}",
    )


def panics(error: BaseException) -> bool:
    """Tell the panic of a library in Rust, which is no Exception."""
    return type(error).__name__ == "PanicException"


@contextmanager
def decoding(
    path: Path, problem: str, *, expected: str = "", hint: str = "", error: type[CultureKitError] = UsageError
) -> Iterator[None]:
    """Explain whatever a decoder raises at a file from outside; the block does nothing but decode it.

    Decoders raise more than they document: `EOFError`, `RecursionError`, `KeyError`, panics of libraries in Rust.

    Raises:
        OSError: the machine is to blame, not the file.
    """
    try:
        yield
    except BaseException as raised:
        if isinstance(raised, CultureKitError) or not (isinstance(raised, Exception) or panics(raised)):
            raise
        if isinstance(raised, FileNotFoundError | NotADirectoryError):
            raise UsageError("there is no such file", where=str(path), expected=expected) from raised
        if isinstance(raised, IsADirectoryError):
            raise UsageError("a folder, not a file", where=str(path), expected=expected) from raised
        raise_system_error(raised, path)
        raise error(problem, where=str(path), expected=expected, found=_why_undecoded(raised), hint=hint) from raised


def _why_undecoded(error: BaseException) -> str:
    """Say in a line why a file could not be decoded."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, EOFError):
        return "it ends too early"
    if isinstance(error, KeyError):
        return f"no {error}"
    if isinstance(error, UnicodeDecodeError):
        return f"no {error.encoding.upper()} at byte {error.start:,}"
    return next(iter(str(error).splitlines()), "") or type(error).__name__


@contextmanager
def explained_outside(where: Path | str) -> Iterator[None]:
    """Explain what fails outside; errors that name no file get `where`: a folder, or in words whoever is asked."""
    try:
        yield
    except BaseException as error:
        failure = outside_failure(error, where=where)
        if failure is None:
            raise
        raise failure from error


STRAY = ".writing-"  # How the name of a file begins while it is being written


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that a reader, or a run after a kill, sees whole or not at all."""
    temporary = path.with_name(f"{STRAY}{os.getpid()}-{path.name}")
    try:
        with system_errors(path), temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Let the system refuse a file at once that it would refuse when the work for it is done."""
    folder = next(folder for folder in path.absolute().parents if folder.exists())
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write bytes whole or not at all."""
    with whole_file(path) as file:
        file.write(content)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder, or what a file holds, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_strays(folder: Path) -> None:
    """Remove what killed writers left half-written below a folder."""
    for path in folder.rglob(f"{STRAY}*"):
        path.unlink(missing_ok=True)


def clear_folder(folder: Path) -> None:
    """Make sure that a folder is there and empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def copy_folder(folder: Path, to: Path) -> None:
    """Copy a folder so that the copy is there whole or not at all."""
    temporary = to.with_name(f"{to.name}.copying")
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(folder, temporary, copy_function=shutil.copyfile)
    sync_tree(temporary)
    temporary.rename(to)
    sync_folder(to.parent)


def copy_file(file: Path, to: Path) -> None:
    """Copy the content of a file, and wait until it is on disk."""
    with system_errors(to):
        shutil.copyfile(file, to)
        sync_folder(to)


def sync_tree(folder: Path) -> None:
    """Wait until every file below a folder is on disk, and its name."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            sync_folder(path)
