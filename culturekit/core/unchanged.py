"""What is read or made once per process, and anew where the files that it comes from are others: workers live long."""

from collections.abc import Callable
from functools import lru_cache, wraps
from itertools import islice
from pathlib import Path
from typing import TypeVar

MANY = 256  # Files of a folder that are looked at; of one with more the folder alone is

Read = TypeVar("Read")
Place = TypeVar("Place", Path, Path | None)


def state_of(path: Path | None) -> tuple[object, ...]:
    """Say in which state a file is as far as the file system tells, or a folder with all that lies in it."""
    own = () if path is None else stamp_of(path)
    within = list(islice(path.rglob("*"), MANY + 1)) if path is not None and own else []
    return (own, *map(stamp_of, within if len(within) <= MANY else ()))


def stamp_of(path: Path) -> tuple[object, ...]:
    """Tell a file from any other, and from itself when it was written; what is no file has no state."""
    try:
        state = path.stat()
    except (OSError, ValueError):
        return ()
    return path.resolve(), state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def once_per_state(read: Callable[[Place], Read]) -> Callable[[Place], Read]:
    """Let a file be read once in each state."""

    @lru_cache(maxsize=1024)
    def kept(path: Place, *_: object) -> Read:
        return read(path)

    @wraps(read)
    def asked(path: Place) -> Read:
        return kept(path, state_of(path))

    return asked
