"""A stage folder in the making: built out of sight, kept across kills, published by one rename.

What a stage paid for lies in `out/journal`. It outlives everything here: another key, `--fresh`, a kill at any moment,
and the folder that is replaced. There is one line of it: the unfinished folder's, which began as a copy of the finished
one's, and takes its place when it is published.
"""

import fcntl
import os
import shutil
import socket
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from culturekit.core.atomic import copy_folder, remove_strays, sync_folder, write_atomically
from culturekit.core.digests import JOURNAL, MANIFEST, RUN_RECORD, Manifest, read_manifest
from culturekit.core.errors import FolderInUse, UsageError
from culturekit.core.literal_keys import masked
from culturekit.core.stage import Work

# One run at a time in a folder; the second learns who the first is.

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
        since = datetime.now(UTC).isoformat(timespec="seconds")
        command = masked(" ".join([Path(sys.argv[0]).name, *sys.argv[1:]]))
        os.write(descriptor, msgspec.json.encode(Holder(os.getpid(), socket.gethostname(), since, command)))
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
        with suppress(FileNotFoundError):  # the last holder may have removed it
            if os.path.samestat(os.fstat(descriptor), lock.stat()):
                return descriptor
        os.close(descriptor)


def in_use(lock: Path, holder: bytes) -> FolderInUse:
    """Say which run holds the lock."""
    try:
        name = str(msgspec.json.decode(holder, type=Holder))
    except msgspec.DecodeError:
        name = "a run that is just starting"
    return FolderInUse(
        "another run is working here", where=str(lock.parent), found=name,
        hint="Wait for it (--wait does), stop it, or work in another folder.",
    )  # fmt: skip


# Seals: what vouches for files of an unfinished stage, so that a later run trusts no file that a power cut damaged.
#
# Whatever a seal names is on disk, name included, before the seal is; content that `whole_file` wrote is there
# already. A file that has another size or checksum than its seal says, for whatever reason, counts as not made.

SEAL = ".seal"
PIECE = 1 << 20


def seal(part: Path, others: Sequence[Path] = ()) -> None:
    """Vouch for a finished part and for other files that it speaks of; from here on they outlive a power cut."""
    seals = {os.path.relpath(path, part.parent): size_and_checksum(path) for path in (part, *others)}
    for folder in sorted({(part.parent / name).parent for name in seals}):
        sync_folder(folder)
    write_atomically(seal_path(part), msgspec.json.encode(seals))


def seal_pictures(part: Path, out: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Vouch for a part of a table of images, and for the files below `out` that its rows name."""
    seal(part, [out / row["path"] for row in rows if row["path"]])


def is_sealed(part: Path) -> bool:
    """Tell whether a part, and all that was sealed with it, is there as it was written."""
    try:
        seals = msgspec.json.decode(seal_path(part).read_bytes(), type=dict[str, tuple[int, int]])
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return False
    folder = part.parent
    try:
        return part.name in seals and all(
            (folder / name).stat().st_size == size and size_and_checksum(folder / name) == (size, checksum)
            for name, (size, checksum) in seals.items()
        )
    except (FileNotFoundError, NotADirectoryError):
        return False


def seal_path(part: Path) -> Path:
    """Name the file that vouches for a part."""
    return part.with_name(part.name + SEAL)


def size_and_checksum(path: Path) -> tuple[int, int]:
    """Read a file for what it is known by."""
    size = checksum = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            size += len(piece)
            checksum = zlib.crc32(piece, checksum)
    return size, checksum


# Work in shards that leave a part file each: what an earlier, cut run has finished is not done again.


class HasPart(Protocol):
    """A work item that is done when its part file is there and sealed."""

    @property
    def part(self) -> Path:
        """What it writes."""


Shard = TypeVar("Shard", bound=HasPart)


def run_shards(
    work: Work,
    shards: Sequence[Shard],
    do: Callable[[Shard], int],
    *,
    size: Callable[[Shard], int],
    unit: str,
    mapper: Callable[[Callable[[Shard], int], Sequence[Shard]], Iterator[int]] | None = None,
) -> None:
    """Do the shards that are not done.

    Args:
        work: Whose progress hears of every shard.
        shards: All of them.
        do: Does one, seals its part and says how many units it was.
        size: Says how many units a shard is before it is done.
        unit: What the units are called.
        mapper: Who does them in place of the engine's workers.
    """
    todo = [shard for shard in shards if not is_sealed(shard.part)]
    total = sum(size(shard) for shard in shards)
    work.progress.begin(total, unit)
    work.progress.advance(total - sum(size(shard) for shard in todo))
    for done in (mapper or work.engine.map)(do, todo):
        work.progress.advance(done)


class Staging:
    """The hidden sibling in which a stage is built: `.NAME.partial` with `out`, `scratch` and the key.

    A killed run leaves it there; the next run of the same key goes on in it, any other starts afresh, but for the
    journal, which lies beside `out` while that is made again.
    """

    def __init__(self, final: Path, *, stage: str) -> None:
        """Name the folders; nothing is touched yet."""
        self.final = final
        self.stage = stage
        self.partial = final.with_name(f".{final.name}.partial")
        self.previous = final.with_name(f".{final.name}.previous")
        self.out = self.partial / "out"
        self.scratch = self.partial / "scratch"
        self.marker = self.partial / "key"
        self.kept = self.partial / JOURNAL

    def recover(self) -> None:
        """Finish or undo a publication that was cut between its two renames."""
        if not self.previous.exists():
            return
        if not self.final.exists():
            finished = self.out if (self.out / MANIFEST).exists() else self.previous
            finished.rename(self.final)
        shutil.rmtree(self.previous, ignore_errors=True)

    def check_free(self) -> None:
        """Refuse to replace anything but an older result of the same stage."""
        if not self.final.exists():
            return
        if not self.final.is_dir():
            raise UsageError("the output is a folder", where=str(self.final), found="a file of that name")
        manifest = read_manifest(self.final)
        if manifest is not None and manifest.stage != self.stage:
            raise UsageError(
                "the folder holds another finished stage", where=str(self.final),
                expected=f"a free place for {self.stage}", found=manifest.stage, hint="Choose another --out.",
            )  # fmt: skip
        if manifest is None and any(self.final.iterdir()):
            raise UsageError(
                "the folder has files that culturekit did not write", where=str(self.final),
                expected="a new, empty or finished stage folder", hint="Choose another --out.",
            )  # fmt: skip

    def open(self, key: str) -> bool:
        """Make the folders ready for a key; tell whether earlier work for the same key goes on."""
        goes_on = self.out.is_dir() and self.marker.exists() and self.marker.read_text(encoding="ascii") == key
        if goes_on:
            (self.out / MANIFEST).unlink(missing_ok=True)
        else:
            self.partial.mkdir(parents=True, exist_ok=True)
            self.clear()
            if not self.kept.exists() and (self.final / JOURNAL).is_dir():
                copy_folder(self.final / JOURNAL, self.kept)
            self.out.mkdir()
            self.scratch.mkdir()
            if self.kept.exists():
                self.kept.rename(self.out / JOURNAL)
                sync_folder(self.out)
            sync_folder(self.partial)
            write_atomically(self.marker, key.encode("ascii"))
        remove_strays(self.partial)
        return goes_on

    def clear(self) -> None:
        """Remove everything from the unfinished folder but its journal."""
        self.marker.unlink(missing_ok=True)
        if (self.out / JOURNAL).is_dir():
            (self.out / JOURNAL).rename(self.kept)
            sync_folder(self.partial)
        for path in self.partial.iterdir():
            if path.is_dir() and path != self.kept:
                shutil.rmtree(path)
            elif path != self.kept:
                path.unlink()
        sync_folder(self.partial)

    def discard(self) -> None:
        """Remove unfinished work, such as what a kill right after publishing left; a journal stays for the next run."""
        if not self.partial.is_dir():
            return
        self.clear()
        if not self.kept.exists():
            self.partial.rmdir()

    def publish(self, manifest: Manifest, run_record: bytes) -> None:
        """Put the finished folder in its place; the manifest is the last file written."""
        remove_strays(self.out)
        for folder in [path for path in self.out.rglob("*") if path.is_dir()]:
            sync_folder(folder)
        write_atomically(self.out / RUN_RECORD, run_record)
        write_atomically(self.out / MANIFEST, manifest.encode())
        sync_folder(self.out)
        if self.final.exists():
            self.final.rename(self.previous)
        self.out.rename(self.final)
        sync_folder(self.final.parent)
        shutil.rmtree(self.previous, ignore_errors=True)
        self.discard()


@contextmanager
def staging(final: Path, *, stage: str, wait: bool = False) -> Iterator[Staging]:
    """Hold a stage folder for one run."""
    with hold(final.with_name(f".{final.name}.lock"), wait=wait):
        staged = Staging(final, stage=stage)
        staged.recover()
        staged.check_free()
        yield staged
