"""Seals: what vouches for files of an unfinished stage, so that a later run trusts no file that a power cut damaged.

Whatever a seal names is on disk, name included, before the seal is; content that `whole_file` wrote is there already. A
file that has another size or checksum than its seal says, for whatever reason, counts as not made.
"""

import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from culturekit.storage.atomic import sync_folder, write_atomically

__all__ = ["is_sealed", "seal", "seal_pictures"]

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
    return part.name in seals and unbroken(part.parent, seals)


def seal_path(part: Path) -> Path:
    """Name the file that vouches for a part."""
    return part.with_name(part.name + SEAL)


def unbroken(folder: Path, seals: Mapping[str, tuple[int, int]]) -> bool:
    """Tell whether files are there with the size and the CRC-32 that they had, by their path from a folder."""
    try:
        return all(
            (folder / name).stat().st_size == size and size_and_checksum(folder / name) == (size, checksum)
            for name, (size, checksum) in seals.items()
        )
    except (FileNotFoundError, NotADirectoryError):
        return False


def size_and_checksum(path: Path) -> tuple[int, int]:
    """Read a file for what it is known by."""
    size = checksum = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            size += len(piece)
            checksum = zlib.crc32(piece, checksum)
    return size, checksum
