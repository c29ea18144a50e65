"""A folder of images named by its content; what has been hashed once, at the same size and time, is remembered."""

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec

from culturekit.errors import IntegrityError
from culturekit.generation.folder.folder_listing import Listing, PictureFile, shown
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import digest
from culturekit.storage.system_errors import machine_fails

__all__ = ["changed_meanwhile", "content_of", "hashed"]

WORTH_REMEMBERING = 64_000_000
"""Bytes of a folder from which hashing it takes longer than a reader would like to wait."""

FILES_AT_ONCE = 4_096
SECONDS_BETWEEN_NOTES = 20.0
MOST_THREADS = 8


class Noted(msgspec.Struct, array_like=True, frozen=True):
    """A file as it was when it was hashed."""

    name: bytes
    size: int
    changed: int
    sha256: str


Memory = Mapping[str, Noted]


def hashed(listing: Listing, memory: Path | None = None) -> Listing:
    """Add the hash of every picture; `memory` is a file in which hashes are kept for the next time.

    Hashing that is cut goes on where it was, as far as the memory had been written.
    """
    if memory is not None and sum(file.size for file in listing.pictures) < WORTH_REMEMBERING:
        memory = None
    known = {} if memory is None else read_memory(memory)
    done: list[PictureFile] = []
    fresh, spoke = False, time.monotonic()
    with ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1)) as threads:
        for start in range(0, len(listing.pictures), FILES_AT_ONCE):
            some = listing.pictures[start : start + FILES_AT_ONCE]
            before = [noted_hash(file, known) for file in some]
            hashes = iter(
                threads.map(hash_file, [(listing.root, f) for f, h in zip(some, before, strict=True) if not h])
            )
            done += [with_hash(file, own or next(hashes)) for file, own in zip(some, before, strict=True)]
            fresh = fresh or not all(before)
            if memory is not None and fresh and time.monotonic() - spoke > SECONDS_BETWEEN_NOTES:
                write_memory(memory, done)
                spoke = time.monotonic()
    if memory is not None and (fresh or len(known) != len(done)):
        write_memory(memory, done)
    return replace(listing, pictures=tuple(done))


def content_of(listing: Listing) -> str:
    """Hash what a folder holds: names and bytes of its pictures, and the names of everything else."""
    return digest(
        {
            "pictures": [[shown(file.name), file.sha256 or file.problem] for file in listing.pictures],
            "others": [[shown(other.name), other.reason] for other in listing.others],
        }
    )


def noted_hash(file: PictureFile, known: Memory) -> str:
    """Give the hash of a file that has not changed since it was noted; a file not to be opened has none to find."""
    if file.problem:
        return f"!{file.problem}"
    note = known.get(file.name)
    return note.sha256 if note is not None and (note.size, note.changed) == (file.size, file.changed) else ""


def hash_file(place: tuple[Path, PictureFile]) -> str:
    """Hash a file; one that cannot be read gives an exclamation mark and the reason."""
    root, file = place
    try:
        with (root / file.name).open("rb") as opened:
            state = os.fstat(opened.fileno())
            if (state.st_size, state.st_mtime_ns) != (file.size, file.changed):
                raise changed_meanwhile(root, file.name)
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise changed_meanwhile(root, file.name) from error
    except OSError as error:
        if machine_fails(error):
            raise
        return f"!file cannot be read: {error.strerror}"


def with_hash(file: PictureFile, found: str) -> PictureFile:
    """Put a hash, or the reason why there is none, to a file."""
    return replace(file, problem=found[1:]) if found.startswith("!") else replace(file, sha256=found)


def changed_meanwhile(root: Path, name: str) -> IntegrityError:
    """Say that somebody else is at work in the folder."""
    return IntegrityError(
        "the folder of images changed while it was read",
        where=str(root),
        found=f"another file, or none, at {shown(name)!r}",
        hint="Wait until nothing writes there, and run the same command again: it goes by what the folder holds then.",
    )


def read_memory(path: Path) -> Memory:
    """Read what was noted; a memory that cannot be read is none."""
    try:
        notes = msgspec.msgpack.decode(path.read_bytes(), type=list[Noted])
    except (OSError, msgspec.DecodeError):
        return {}
    return {os.fsdecode(note.name): note for note in notes}


def write_memory(path: Path, files: Sequence[PictureFile]) -> None:
    """Note the files hashed so far."""
    notes = [Noted(os.fsencode(f.name), f.size, f.changed, f.sha256) for f in files if f.sha256]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.msgpack.encode(notes))
