"""One run at a time in a folder; the second learns who the first is."""

import fcntl
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from culturekit.errors import FolderInUse
from culturekit.records.literal_keys import masked

__all__ = ["Holder", "hold"]

POLL_SECONDS = 0.2


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock."""

    pid: int
    host: str
    since: str
    command: str

    def __str__(self) -> str:
        """Name the run as its user would recognise it."""
        return f"process {self.pid} on {self.host}, since {self.since}: {self.command}"


@contextmanager
def hold(lock: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a lock file for the length of a block; the kernel frees it when the process dies.

    A lock that somebody else holds is waited for, or refused with the holder's name.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    descriptor = acquire(lock, wait=wait)
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, msgspec.json.encode(this_process()))
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def acquire(lock: Path, *, wait: bool) -> int:
    """Open and lock the file, and make sure that the name still points to what was locked."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 10_000, 0)
            os.close(descriptor)
            if not wait:
                raise in_use(lock, holder) from None
            time.sleep(POLL_SECONDS)
            continue
        if same_file(descriptor, lock):
            return descriptor
        os.close(descriptor)


def same_file(descriptor: int, path: Path) -> bool:
    """Tell whether an open file is still the one at a path: the last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def in_use(lock: Path, holder: bytes) -> FolderInUse:
    """Say which run holds the lock."""
    try:
        name = str(msgspec.json.decode(holder, type=Holder))
    except msgspec.DecodeError:
        name = "a run that is just starting"
    return FolderInUse(
        "another run is working here",
        where=str(lock.parent),
        found=name,
        hint="Wait for it (--wait does), stop it, or work in another folder.",
    )


def this_process() -> Holder:
    """Describe the running process."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    command = masked(" ".join([Path(sys.argv[0]).name, *sys.argv[1:]]))
    return Holder(os.getpid(), socket.gethostname(), since, command)
