"""Compressed bytes to plain bytes, strictly: a cut or a flipped bit is an error with its place, never a shorter file.

Python's own `gzip` and `bz2` readers end quietly at some cuts between members; these do not.
"""

import bz2
import io
import sys
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from isal import igzip_lib, isal_zlib

from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.registry import needing

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


# A range of a `.bz2` file to plain bytes: the blocks that begin in it, each decompressed by itself.
#
# Blocks begin at any bit, with a mark of 48 bits. Wrapped as a stream of its own, a block decompresses alone and its
# checksum is verified; the checksum of a stream is that of its blocks in order, and is verified by who sees them all.

BLOCK = 0x314159265359
END = 0x177245385090
MARK_BITS = 48
CHECKSUM_BITS = 32
HEADER = b"BZh9"
FIRST_BLOCK = 8 * len(HEADER)
"""The bit at which the first block of a file begins."""

AHEAD = 4_000_000
"""Bytes read behind a range, where its last block ends: no block is larger."""

BETWEEN_STARTS = 8_000_000
"""Plain bytes between the blocks that are remembered as places to begin at: a quarter of a second of decompressing."""


def combined(checksum: int, block: int) -> int:
    """Add the checksum of a block to that of its stream."""
    return ((checksum << 1 | checksum >> 31) & 0xFFFFFFFF) ^ block


class Bzip2Range(FileRange):
    """The blocks and stream ends of a file whose first bits lie from `begin` to before `end`, in bits."""

    __slots__ = ()

    def chunks(self) -> Iterator[Chunk]:
        """Decompress the blocks one after the other."""
        size = self.path.stat().st_size
        base = self.begin // 8
        with self.path.open("rb") as file:
            if self.begin <= FIRST_BLOCK and not is_header(file.read(len(HEADER))):
                raise self.broken(0, "it does not begin as a bzip2 file does" if size else "the file is empty")
            file.seek(base)
            data = file.read(-(-self.end // 8) - base + AHEAD)
        marks = [(8 * base + place, kind) for place, kind in find_marks(data)]
        places = [place for place, _ in marks]
        position = bisect_left(places, self.begin)
        if position < len(marks) and places[position] < self.end:
            self.start = self.stop = places[position]
        if self.exact and self.start != self.begin:
            raise self.broken(self.begin, "no block begins where one should")
        offset = 0
        while position < len(marks) and places[position] < self.end:
            place, kind = marks[position]
            if kind == END:
                self.checks.append((1, bits(data, place - 8 * base + MARK_BITS, CHECKSUM_BITS)))
                self.stop = self.next_stream(data, place + MARK_BITS + CHECKSUM_BITS, base, size)
                self.members, offset = self.members + 1, 0
                position = bisect_left(places, self.stop)
                if self.stop < 8 * size and (position == len(marks) or places[position] != self.stop):
                    raise self.broken(self.stop, "no block begins where one should")
                continue
            content, position = self.block(data, marks, position, base)
            if not offset or offset - self.starts[-1][1] >= BETWEEN_STARTS:
                self.starts.append((self.members, offset, place))
            yield Chunk(self.members, offset, content)
            offset += len(content)

    def block(self, data: bytes, marks: list[tuple[int, int]], position: int, base: int) -> tuple[bytes, int]:
        """Decompress a block; give its bytes and the number of the mark that follows it."""
        place = marks[position][0]
        checksum = bits(data, place - 8 * base + MARK_BITS, CHECKSUM_BITS)
        problem = "the file ends inside the block"
        # By chance the mark may stand in a block's data, once in 2^48 bits: then the block ends at the next one.
        for following in range(position + 1, min(position + 3, len(marks))):
            stop = marks[following][0]
            try:
                content = alone(data, place - 8 * base, stop - 8 * base, checksum)
            except (OSError, ValueError, EOFError) as error:
                problem = str(error)
                continue
            self.checks.append((0, checksum))
            self.stop = stop
            return content, following
        raise self.broken(place, problem)

    def next_stream(self, data: bytes, place: int, base: int, size: int) -> int:
        """Find the bit at which the first block of the next stream begins, or the end of the file."""
        byte = -(-place // 8)
        header = data[byte - base : byte - base + len(HEADER)]
        if byte == size:
            return 8 * size
        if byte > size or not is_header(header):
            raise self.broken(
                place, "what follows a stream is no stream" if byte <= size else "the file ends too early"
            )
        return 8 * (byte + len(HEADER))

    def broken(self, bit: int, problem: str) -> IntegrityError:
        """Say where the file is broken."""
        return damaged(str(self.path), self.first_member + self.members, bit // 8, bit // 8, problem)


def is_header(data: bytes) -> bool:
    """Tell whether a stream begins here."""
    return len(data) == len(HEADER) and data[:3] == HEADER[:3] and data[3:4] in b"123456789"


def find_marks(data: bytes) -> list[tuple[int, int]]:
    """Find the marks of blocks and of ends of streams: bit within the data, and which."""
    found = []
    for mark in (BLOCK, END):
        for shift in range(8):
            # Of the seven bytes that a shifted mark touches, the inner five are known whole.
            inner = (mark << (8 - shift)).to_bytes(7, "big")[1:6]
            place = data.find(inner, 1)
            while place >= 0:
                bit = 8 * (place - 1) + shift
                if bit + MARK_BITS <= 8 * len(data) and bits(data, bit, MARK_BITS) == mark:
                    found.append((bit, mark))
                place = data.find(inner, place + 1)
    return sorted(set(found))


def bits(data: bytes, start: int, count: int) -> int:
    """Read some bits as a number."""
    first, last = start // 8, -(-(start + count) // 8)
    number = int.from_bytes(data[first:last], "big") >> (8 * last - start - count)
    return number & ((1 << count) - 1)


def alone(data: bytes, start: int, stop: int, checksum: int) -> bytes:
    """Decompress the block between two bits as a stream of its own."""
    body = (bits(data, start, stop - start) << MARK_BITS | END) << CHECKSUM_BITS | checksum
    length = stop - start + MARK_BITS + CHECKSUM_BITS
    stream = HEADER + (body << (-length % 8)).to_bytes(-(-length // 8), "big")
    inflater = bz2.BZ2Decompressor()
    content = inflater.decompress(stream)
    if not inflater.eof or inflater.unused_data:
        raise ValueError("the block does not end where the next one begins")
    return content


# A range of a `.gz` file to plain bytes: the members that begin in it, whole.
#
# A gzip file may be many members one after the other, as the dumps are. No index says where they begin: the mark of a
# header is looked for, and what follows must decompress. Whether a find was a member's true start shows in the end:
# the members before it must end exactly there.

MARK = b"\x1f\x8b\x08"
RESERVED = 0xE0
"""Bits of the flags byte that are zero in every gzip header."""

FEED = 32768
"""Compressed bytes read at once."""

PLAIN_BYTES = 262_144
"""Plain bytes asked for at once: they stay in the processor's cache until their lines are decoded, and the allocator
gives the same memory again and again. Left to itself a feed becomes a chunk of any size, of pages never touched before.
"""

BROKEN = (cast("type[Exception]", igzip_lib.IsalError), cast("type[Exception]", isal_zlib.error), OSError, EOFError)
PROBE = 8_192


class GzipRange(FileRange):
    """The members of a file that begin at `begin` or later, and before `end`."""

    __slots__ = ()

    def chunks(self) -> Iterator[Chunk]:
        """Decompress the members one after the other; each must end with its checksum."""
        self.start = self.begin if self.exact else first_start(self.path, self.begin, self.end)
        if self.start is None:
            return
        with self.path.open("rb") as file:
            file.seek(self.start)
            position, waiting = self.start, b""
            while position < self.end:
                self.starts.append((self.members, 0, position))
                began, offset, inflater = position, 0, igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
                while not inflater.eof:
                    compressed = b""
                    if inflater.needs_input:
                        compressed, waiting = waiting or file.read(FEED), b""
                        if not compressed:
                            raise self.broken(began, position, "the file ends inside the member")
                    position += len(compressed)
                    try:
                        content = inflater.decompress(compressed, PLAIN_BYTES)
                    except BROKEN as error:
                        raise self.broken(began, position, str(error)) from error
                    if content:
                        yield Chunk(self.members, offset, content)
                        offset += len(content)
                waiting = inflater.unused_data
                position -= len(waiting)
                self.members += 1
                self.stop = position
                waiting = waiting or file.read(FEED)
                if not waiting:
                    return

    def broken(self, began: int, position: int, problem: str) -> IntegrityError:
        """Say where the file is broken."""
        return damaged(str(self.path), self.first_member + self.members, began, position, problem)


def first_start(path: Path, begin: int, end: int) -> int | None:
    """Find the first place of a range where a member seems to begin."""
    with path.open("rb") as file:
        file.seek(begin)
        window, base = file.read(min(FEED * 16, end - begin + 2)), begin
        while window:
            place = window.find(MARK)
            while place >= 0:
                if base + place >= end:
                    return None
                if begins_member(path, base + place):
                    return base + place
                place = window.find(MARK, place + 1)
            kept = window[-(len(MARK) - 1) :]
            base += len(window) - len(kept)
            more = file.read(FEED * 16) if base < end else b""
            window = kept + more if more else b""
    return None


def begins_member(path: Path, place: int) -> bool:
    """Tell whether a member seems to begin at a place: its header is clean and its first bytes decompress."""
    with path.open("rb") as file:
        file.seek(place)
        probe = file.read(PROBE)
    if len(probe) < 4 or probe[3] & RESERVED:
        return False
    inflater = isal_zlib.decompressobj(wbits=GZIP_WINDOW)
    try:
        return bool(inflater.decompress(probe)) or bool(inflater.eof)
    except BROKEN:
        return False


def second_member(path: Path, *, within: int) -> int | None:
    """Find where a second member begins, if one does within so many bytes."""
    return first_start(path, 1, within)
