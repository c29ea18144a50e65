"""Failures of the outside, as what they are: a full disk, a refused file, a service that is gone.

```
what is raised anywhere -> the system's own error, if there is one -> UpstreamUnavailable (exit code 3), in its words
```
Polars, NumPy and SQLite raise types of their own for what the system refused, and tell its number in the text at most.
Whoever writes or reads files makes them OSErrors again; whoever runs a stage or a command explains what is left.
"""

import errno
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from culturekit.errors import CultureKitError, UpstreamUnavailable, UsageError

__all__ = [
    "explained_outside",
    "machine_fails",
    "outside_failure",
    "raise_system_error",
    "system_error",
    "system_errors",
]

NUMBER = re.compile(r"\(os error (\d+)\)|\[Errno (\d+)\]|\bOs \{ code: (\d+),")
"""How libraries that are written in Rust, or wrap what Python raised, tell the number of the system's error."""

NAMING = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ENAMETOOLONG, errno.ELOOP}
"""These say that a name leads to no such file, not that the machine failed."""

MISNAMED: Mapping[int, str] = {
    errno.ENOTDIR: "a file stands where a folder is expected",
    errno.EISDIR: "a folder stands where a file is expected",
    errno.ENAMETOOLONG: "a name is longer than the disk allows",
    errno.EEXIST: "something of that name is there already",
}
"""What a name that leads to the other kind means: whoever typed it can mend it, and waiting mends nothing."""

FAILING = {errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ENODEV}
"""These say nothing about the file that was to be read: the same file may be read tomorrow."""

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
    place = os.fsdecode(found.filename) if isinstance(found.filename, str | bytes) else where
    if misnamed := MISNAMED.get(found.errno or 0):
        return UsageError(misnamed, where=str(place), hint="Name another place.")
    first = HINTS.get(found.errno or 0)
    return UpstreamUnavailable(
        f"the system refused: {found.strerror or os.strerror(found.errno or 0)}",
        where=str(place),
        found=free_beside(Path(place)) if found.errno in FULL and (found.filename or isinstance(where, Path)) else "",
        hint=f"{first}, then {ONCE_MORE}" if first else f"Mend that, then {ONCE_MORE}",
    )


def panics(error: BaseException) -> bool:
    """Tell the panic of a library in Rust, which is no Exception."""
    return type(error).__name__ == "PanicException"


def free_beside(place: Path) -> str:
    """Say how many bytes are free on the disk where a file lies or would lie."""
    path = place.absolute()
    free = shutil.disk_usage(next(folder for folder in (path, *path.parents) if folder.exists())).free
    return f"{free:,} bytes free on that disk"


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
