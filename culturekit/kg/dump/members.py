"""Compressed bytes to plain bytes, strictly: a cut or a flipped bit is an error with its place, never a shorter file.

Python's own `gzip` and `bz2` readers end quietly at some cuts between members; these do not.
"""

import bz2
import io
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from isal import igzip_lib, isal_zlib

from culturekit.errors import IntegrityError, UsageError
from culturekit.registry import needing

__all__ = [
    "GZIP_WINDOW",
    "STDIN",
    "Chunk",
    "FileRange",
    "ZstdFrame",
    "damaged",
    "gzip_member",
    "read_chunks",
    "read_members",
    "tells_damage",
]

STDIN = Path("-")
CHUNK_BYTES = 65_536
BROKEN_GZIP = cast("type[Exception]", igzip_lib.IsalError)
MARKS = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zst": b"\x28\xb5\x2f\xfd"}
LARGEST_FRAME_HEADER = 18
GZIP_WINDOW = 31
"""zlib's number for a gzip header and the largest window."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Plain bytes, and where they begin: the member, counted from 0, and the offset within it.

    `begin` is where in the file the member begins, on the first chunk of one that was read from the file's beginning.
    """

    member: int
    offset: int
    content: bytes
    begin: int | None = None


@dataclass(slots=True)
class FileRange(ABC):
    """A range of a file, from `begin` to before `end`; all below is known when its `chunks` are read.

    Attributes:
        exact: whether something begins at `begin`; else it is looked for.
        first_member: the number in the file of the first member, for messages.
        start: where the first member, or block, of the range begins; None where none does.
        stop: where what follows the last one begins.
        members: how many end here.
        starts: where reading can begin within the range: a member, the offset of its plain bytes, and where in the file
            they begin: a byte, of bzip2 a bit.
        checks: of bzip2: (0, checksum) of each block and (1, checksum) of each stream's end.
    """

    path: Path
    begin: int
    end: int
    exact: bool = True
    first_member: int = 0
    start: int | None = field(default=None, init=False)
    stop: int = field(init=False)
    members: int = field(default=0, init=False)
    starts: list[tuple[int, int, int]] = field(default_factory=list, init=False)
    checks: list[tuple[int, int]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Begin with nothing read."""
        self.stop = self.begin

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """Give the bytes."""


class Inflater(Protocol):
    """The part of a decompressor that a member needs."""

    @property
    def eof(self) -> bool:
        """Whether the member has ended, its checksum included."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What came after the end of the member."""
        ...

    def decompress(self, data: bytes, /) -> bytes:
        """Take compressed bytes, give plain ones."""
        ...


def read_chunks(path: Path) -> Iterator[Chunk]:
    """Read a dump file by its suffix: `.gz`, `.bz2`, `.zst`, anything else as it is; `-` is standard input."""
    if path != STDIN and not path.is_file():
        raise UsageError("there is no such dump file", where=str(path))
    with ExitStack() as stack:
        file = standard_input() if path == STDIN else stack.enter_context(path.open("rb"))
        suffix = suffix_of(file) if path == STDIN else path.suffix
        inflater = {".gz": gzip_member, ".bz2": bz2.BZ2Decompressor, ".zst": ZstdFrame}.get(suffix)
        if inflater is None:
            yield from read_plain(file)
        else:
            yield from read_members(file, inflater, name=str(path))


def standard_input() -> io.BufferedReader:
    """Give standard input as bytes."""
    return io.BufferedReader(cast("io.RawIOBase", sys.stdin.buffer), CHUNK_BYTES)


def suffix_of(file: io.BufferedReader) -> str:
    """Tell from the first bytes how standard input is compressed."""
    first = file.peek(4)
    return next((suffix for suffix, mark in MARKS.items() if first.startswith(mark)), "")


def tells_damage(path: Path) -> bool:
    """Tell whether damage to a file shows in it: gzip and bzip2 carry checksums, zstd may, plain files do not."""
    if path.suffix != ".zst":
        return path.suffix in {".gz", ".bz2"}
    with path.open("rb") as file:
        header = file.read(LARGEST_FRAME_HEADER)
    # Where the package is missing, or this is no frame, reading will say what is wrong.
    try:
        import zstandard
    except ModuleNotFoundError:
        return True
    try:
        return bool(zstandard.get_frame_parameters(header).has_checksum)
    except zstandard.ZstdError:
        return True


def read_plain(file: BinaryIO) -> Iterator[Chunk]:
    """Read bytes as they are, as one member."""
    offset = 0
    while content := file.read(CHUNK_BYTES):
        yield Chunk(0, offset, content)
        offset += len(content)


def read_members(file: BinaryIO, new_member: Callable[[], Inflater], *, name: str) -> Iterator[Chunk]:
    """Read members one after the other; each must end with its own end mark and checksum."""
    member, offset, started, position = 0, 0, 0, 0
    inflater: Inflater | None = None
    while compressed := file.read(CHUNK_BYTES):
        position += len(compressed)
        while compressed:
            if inflater is None:
                inflater, offset, started = new_member(), 0, position - len(compressed)
            try:
                content = inflater.decompress(compressed)
            except (BROKEN_GZIP, OSError, ValueError, EOFError) as error:
                raise damaged(name, member, started, position, str(error)) from error
            if content:
                yield Chunk(member, offset, content, None if offset else started)
                offset += len(content)
            compressed = inflater.unused_data if inflater.eof else b""
            if inflater.eof:
                inflater, member = None, member + 1
    if inflater is not None:
        raise damaged(name, member, started, position, "the file ends inside the member")
    if member == 0:
        raise damaged(name, 0, 0, 0, "the file is empty")


def damaged(name: str, member: int, started: int, position: int, problem: str) -> IntegrityError:
    """Say where a compressed file is broken."""
    return IntegrityError(
        f"damaged: {problem}",
        where=name,
        found=f"the damage in member {member}, which starts at byte {started}, at or before byte {position}",
        hint="Nothing was published. Download the file again and check it against the published checksum.",
    )


def gzip_member() -> Inflater:
    """Start a gzip member."""
    member: Inflater = isal_zlib.decompressobj(wbits=GZIP_WINDOW)
    return member


class ZstdFrame:
    """A zstd frame whose errors are ValueErrors, so that nobody else needs to know the package."""

    def __init__(self) -> None:
        """Start a frame."""
        with needing("kg", "reading .zst"):
            import zstandard
        self.frame = zstandard.ZstdDecompressor().decompressobj()
        self.error = zstandard.ZstdError

    @property
    def eof(self) -> bool:
        """Whether the frame has ended, its checksum included."""
        return bool(self.frame.eof)

    @property
    def unused_data(self) -> bytes:
        """What came after the end of the frame."""
        return bytes(self.frame.unused_data)

    def decompress(self, data: bytes, /) -> bytes:
        """Take compressed bytes, give plain ones."""
        try:
            return bytes(self.frame.decompress(data))
        except self.error as error:
            raise ValueError(str(error)) from error
