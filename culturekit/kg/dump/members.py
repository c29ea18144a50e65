"""Decompress dump files strictly: a cut or a flipped bit is an error with its position, never a shorter file.

Python's own `gzip` and `bz2` readers end quietly at some cuts between members; these do not.
"""

import bz2
import io
import sys
import tarfile
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from isal import igzip_lib, isal_zlib

from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.registry import needing

STDIN = Path("-")
_PLAIN_CHUNK = 1_000_000
_FEED = 32_768  # compressed bytes read at once
# Plain bytes asked for at once: they stay in the processor's cache until their lines are decoded, and the allocator
# gives the same pages again. Left to itself a feed becomes a chunk of any size, of pages never touched before.
_PLAIN_BYTES = 262_144
_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zst": b"\x28\xb5\x2f\xfd"}
_LARGEST_FRAME_HEADER = 18
_ISAL_ERRORS = (cast("type[Exception]", igzip_lib.IsalError), cast("type[Exception]", isal_zlib.error))
_BROKEN = (*_ISAL_ERRORS, OSError, EOFError, ValueError)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Plain bytes, and where they begin: the member, counted from 0, and the offset within it.

    `begin` is where in the file the member begins, on the first chunk of a member.
    """

    member: int
    offset: int
    content: bytes
    begin: int | None = None


@dataclass(slots=True)
class FileRange:
    """A range of a file, from `begin` to before `end`; all below is known once its `chunks` are read.

    Attributes:
        exact: whether something begins at `begin`; else it is searched for.
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
        self.stop = self.begin

    def chunks(self) -> Iterator[Chunk]:
        """Read plain bytes, of one member; offsets are counted from `begin`."""
        self.start = position = self.begin
        self.starts.append((0, 0, position))
        with self.path.open("rb") as file:
            file.seek(position)
            while content := file.read(min(_PLAIN_CHUNK, self.end - position)):
                yield Chunk(0, position - self.begin, content)
                position += len(content)
        self.stop = position

    def inflate(self, file: BinaryIO, new_member: Callable[[], Any]) -> Iterator[Chunk]:
        """Decompress members one after the other; each must end with its own end mark and checksum."""
        position, waiting = self.begin, file.read(_FEED)
        while waiting and position < self.end:
            self.starts.append((self.members, 0, position))
            began, offset, inflater = position, 0, new_member()
            while not inflater.eof:
                compressed = b""
                if inflater.needs_input:
                    compressed, waiting = waiting or file.read(_FEED), b""
                    if not compressed:
                        raise self.damaged(began, position, "the file ends inside the member")
                position += len(compressed)
                try:
                    content = inflater.decompress(compressed, _PLAIN_BYTES)
                except _BROKEN as error:
                    raise self.damaged(began, position, str(error)) from error
                if content:
                    yield Chunk(self.members, offset, content, None if offset else began)
                    offset += len(content)
            waiting = inflater.unused_data
            position -= len(waiting)
            self.members += 1
            self.stop = position
            waiting = waiting or file.read(_FEED)

    def damaged(self, began: int, position: int, problem: str) -> IntegrityError:
        """Name the member that is damaged."""
        return damaged(str(self.path), self.first_member + self.members, began, position, problem)


def damaged(name: str, member: int, started: int, position: int, problem: str) -> IntegrityError:
    """Describe where a compressed file is damaged."""
    return IntegrityError(
        f"damaged: {problem}",
        where=name,
        found=f"the damage in member {member}, which starts at byte {started}, at or before byte {position}",
        hint="Nothing was published. Download the file again and check it against the published checksum.",
    )


def read_chunks(path: Path, *, begin: int = 0) -> Iterator[Chunk]:
    """Read a dump file by its suffix: `.gz`, `.bz2`, `.zst`, anything else as it is; `-` is standard input.

    With `begin`, a byte at which a member begins, members and bytes are counted from there.
    """
    if path != STDIN and not path.is_file():
        raise UsageError("there is no such dump file", where=str(path))
    with ExitStack() as stack:
        if path == STDIN:
            file: BinaryIO = (stdin := io.BufferedReader(cast("io.RawIOBase", sys.stdin.buffer), _FEED))
            first = stdin.peek(4)
            suffix = next((suffix for suffix, magic in _MAGIC.items() if first.startswith(magic)), "")
        else:
            file, suffix = stack.enter_context(path.open("rb")), path.suffix
            file.seek(begin)
        new_member = {".gz": _gzip_member, ".bz2": bz2.BZ2Decompressor, ".zst": _ZstdFrame}.get(suffix)
        if new_member is None:
            offset = 0
            while content := file.read(_FEED):
                yield Chunk(0, offset, content)
                offset += len(content)
            return
        members = FileRange(path, begin, sys.maxsize)
        chunks = members.inflate(file, new_member)
        yield from _unpacked(chunks, str(path)) if is_archive(path) and not begin else chunks
        if not members.members:
            raise damaged(str(path), 0, 0, 0, "the file is empty")


# Wikimedia Enterprise publishes snapshots, and the chunks of them, as archives of one file of JSON lines.
_ARCHIVES = (".tar.gz", ".tgz")
_BLOCK_OF_TAR = 512


def is_archive(path: Path) -> bool:
    """Tell an archive by its name."""
    return path.name.lower().endswith(_ARCHIVES)


def _unpacked(chunks: Iterator[Chunk], name: str) -> Iterator[Chunk]:
    """Give the content of the files in an archive, at the places where it stands there; each file ends its line.

    Raises:
        IntegrityError: what should be the head of a file is none, or the archive ends within a file.
    """
    head, left, padding, kept, last = b"", 0, 0, False, b"\n"
    for chunk in chunks:
        start, size = 0, len(chunk.content)
        while start < size:
            if left:
                end = min(size, start + left)
                if kept:
                    last = chunk.content[end - 1 : end]
                    yield Chunk(chunk.member, chunk.offset + start, chunk.content[start:end])
                left, start = left - (end - start), end
                if not left and kept and last != b"\n":
                    yield Chunk(chunk.member, chunk.offset + end, b"\n")
            elif padding:
                skipped = min(padding, size - start)
                padding, start = padding - skipped, start + skipped
            else:
                wanted = _BLOCK_OF_TAR - len(head)
                head, start = head + chunk.content[start : start + wanted], start + wanted
                if len(head) == _BLOCK_OF_TAR:
                    left, kept = _file_in(head, name)
                    padding, head = -left % _BLOCK_OF_TAR, b""
    if left or head:
        raise IntegrityError("the archive ends within a file", where=name, hint="Fetch the file again.")


def _file_in(head: bytes, name: str) -> tuple[int, bool]:
    """Read the head of an entry: its size, and whether it is a plain file; two empty heads end an archive."""
    if not head.strip(b"\0"):
        return 0, False
    try:
        entry = tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        raise IntegrityError(
            "not an archive of JSON lines", where=name, expected="a tar file, as Wikimedia Enterprise publishes them",
            found=str(error), hint="Give a file that is only compressed its own suffix, .json.gz.",
        ) from error  # fmt: skip
    return entry.size, entry.isreg()


def tells_damage(path: Path) -> bool:
    """Tell whether damage to a file shows in it: gzip and bzip2 carry checksums, zstd may, plain files do not."""
    if path.suffix != ".zst":
        return path.suffix in {".gz", ".bz2"}
    with path.open("rb") as file:
        header = file.read(_LARGEST_FRAME_HEADER)
    # Where the package is missing, or this is no frame, reading will say what is wrong.
    try:
        import zstandard
    except ModuleNotFoundError:
        return True
    try:
        return bool(zstandard.get_frame_parameters(header).has_checksum)
    except zstandard.ZstdError:
        return True


def _gzip_member() -> "igzip_lib.IgzipDecompressor":
    return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)


class _ZstdFrame:
    """A zstd frame with the interface of `BZ2Decompressor`; its errors are ValueErrors."""

    needs_input = True

    def __init__(self) -> None:
        with needing("kg", "reading .zst"):
            import zstandard
        self._frame, self._error = zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError

    @property
    def eof(self) -> bool:
        """Whether the frame has ended, its checksum included."""
        return bool(self._frame.eof)

    @property
    def unused_data(self) -> bytes:
        """What came after the end of the frame."""
        return bytes(self._frame.unused_data)

    def decompress(self, data: bytes, _most: int) -> bytes:
        """Take compressed bytes, give plain ones."""
        try:
            return bytes(self._frame.decompress(data))
        except self._error as error:
            raise ValueError(str(error)) from error


# A range of a `.bz2` file: the blocks that begin in it, each decompressed by itself.
#
# Blocks begin at any bit, with a mark of 48 bits. Wrapped as a stream of its own, a block decompresses alone and its
# checksum is verified; the checksum of a stream is that of its blocks in order, verified by whoever sees them all.

_BLOCK, _END = 0x314159265359, 0x177245385090
_MARK_BITS, _CHECKSUM_BITS = 48, 32
_HEADER = b"BZh9"
FIRST_BLOCK = 8 * len(_HEADER)  # the bit at which the first block of a file begins
_AHEAD = 4_000_000  # bytes read behind a range, where its last block ends: no block is larger
_BETWEEN_STARTS = 8_000_000  # plain bytes between the blocks that are kept as starts: 0.25 s of decompressing


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
            if self.begin <= FIRST_BLOCK and not _is_header(file.read(len(_HEADER))):
                raise self._broken(0, "it does not begin as a bzip2 file does" if size else "the file is empty")
            file.seek(base)
            data = file.read(-(-self.end // 8) - base + _AHEAD)
        marks = [(8 * base + bit, kind) for bit, kind in _find_marks(data)]
        places = [bit for bit, _ in marks]
        position = bisect_left(places, self.begin)
        if position < len(marks) and places[position] < self.end:
            self.start = self.stop = places[position]
        if self.exact and self.start != self.begin:
            raise self._broken(self.begin, "no block begins where one should")
        offset = 0
        while position < len(marks) and places[position] < self.end:
            bit, kind = marks[position]
            if kind == _END:
                self.checks.append((1, _bits(data, bit - 8 * base + _MARK_BITS, _CHECKSUM_BITS)))
                self.stop = self._next_stream(data, bit + _MARK_BITS + _CHECKSUM_BITS, base, size)
                self.members, offset = self.members + 1, 0
                position = bisect_left(places, self.stop)
                if self.stop < 8 * size and (position == len(marks) or places[position] != self.stop):
                    raise self._broken(self.stop, "no block begins where one should")
                continue
            content, position = self._block(data, marks, position, base)
            if not offset or offset - self.starts[-1][1] >= _BETWEEN_STARTS:
                self.starts.append((self.members, offset, bit))
            yield Chunk(self.members, offset, content)
            offset += len(content)

    def _block(self, data: bytes, marks: list[tuple[int, int]], position: int, base: int) -> tuple[bytes, int]:
        """Decompress a block; return its bytes and the number of the mark that follows it."""
        begin = marks[position][0]
        checksum = _bits(data, begin - 8 * base + _MARK_BITS, _CHECKSUM_BITS)
        problem = "the file ends inside the block"
        # By chance the mark may stand in a block's data, once in 2^48 bits: then the block ends at the next one.
        for following in range(position + 1, min(position + 3, len(marks))):
            stop = marks[following][0]
            try:
                content = _alone(data, begin - 8 * base, stop - 8 * base, checksum)
            except (OSError, ValueError, EOFError) as error:
                problem = str(error)
                continue
            self.checks.append((0, checksum))
            self.stop = stop
            return content, following
        raise self._broken(begin, problem)

    def _next_stream(self, data: bytes, bit: int, base: int, size: int) -> int:
        """Find the bit at which the first block of the next stream begins, or the end of the file."""
        byte = -(-bit // 8)
        if byte == size:
            return 8 * size
        if byte > size:
            raise self._broken(bit, "the file ends too early")
        if not _is_header(data[byte - base : byte - base + len(_HEADER)]):
            raise self._broken(bit, "what follows a stream is no stream")
        return 8 * (byte + len(_HEADER))

    def _broken(self, bit: int, problem: str) -> IntegrityError:
        return self.damaged(bit // 8, bit // 8, problem)


def _is_header(data: bytes) -> bool:
    return len(data) == len(_HEADER) and data[:3] == _HEADER[:3] and data[3:4] in b"123456789"


def _find_marks(data: bytes) -> list[tuple[int, int]]:
    """Find the marks of blocks and of ends of streams: bit within the data, and which."""
    found = set()
    for mark in (_BLOCK, _END):
        for shift in range(8):
            # Of the seven bytes that a shifted mark touches, the inner five are known whole.
            inner = (mark << (8 - shift)).to_bytes(7, "big")[1:6]
            byte = data.find(inner, 1)
            while byte >= 0:
                bit = 8 * (byte - 1) + shift
                if bit + _MARK_BITS <= 8 * len(data) and _bits(data, bit, _MARK_BITS) == mark:
                    found.add((bit, mark))
                byte = data.find(inner, byte + 1)
    return sorted(found)


def _bits(data: bytes, start: int, count: int) -> int:
    """Read some bits as a number."""
    first, last = start // 8, -(-(start + count) // 8)
    number = int.from_bytes(data[first:last], "big") >> (8 * last - start - count)
    return number & ((1 << count) - 1)


def _alone(data: bytes, start: int, stop: int, checksum: int) -> bytes:
    """Decompress the block between two bits as a stream of its own."""
    body = (_bits(data, start, stop - start) << _MARK_BITS | _END) << _CHECKSUM_BITS | checksum
    length = stop - start + _MARK_BITS + _CHECKSUM_BITS
    stream = _HEADER + (body << (-length % 8)).to_bytes(-(-length // 8), "big")
    inflater = bz2.BZ2Decompressor()
    content = inflater.decompress(stream)
    if not inflater.eof or inflater.unused_data:
        raise ValueError("the block does not end where the next one begins")
    return content


# A range of a `.gz` file: the members that begin in it, whole.
#
# A gzip file may be many members one after the other, as the dumps are. No index says where they begin: the mark of a
# header is searched for, and what follows must decompress. Whether a find was a member's true start shows in the end:
# the members before it must end exactly there.

_GZIP_HEADER = b"\x1f\x8b\x08"
_RESERVED = 0xE0  # bits of the flags byte that are zero in every gzip header
_PROBE = 8_192
_GZIP_WINDOW = 31  # zlib's number for a gzip header and the largest window


class GzipRange(FileRange):
    """The members of a file that begin at `begin` or later, and before `end`."""

    __slots__ = ()

    def chunks(self) -> Iterator[Chunk]:
        """Decompress the members one after the other."""
        self.start = self.begin if self.exact else _first_start(self.path, self.begin, self.end)
        if self.start is None:
            return
        with self.path.open("rb") as file:
            self.begin = file.seek(self.start)
            yield from self.inflate(file, _gzip_member)


def _first_start(path: Path, begin: int, end: int) -> int | None:
    """Find the first position of a range where a member seems to begin."""
    with path.open("rb") as file:
        file.seek(begin)
        window, base = file.read(min(_FEED * 16, end - begin + 2)), begin
        while window:
            at = window.find(_GZIP_HEADER)
            while at >= 0:
                if base + at >= end:
                    return None
                if _begins_member(path, base + at):
                    return base + at
                at = window.find(_GZIP_HEADER, at + 1)
            kept = window[-(len(_GZIP_HEADER) - 1) :]
            base += len(window) - len(kept)
            more = file.read(_FEED * 16) if base < end else b""
            window = kept + more if more else b""
    return None


def _begins_member(path: Path, position: int) -> bool:
    """Tell whether a member seems to begin at a position: its header is clean and its first bytes decompress."""
    with path.open("rb") as file:
        file.seek(position)
        probe = file.read(_PROBE)
    if len(probe) < 4 or probe[3] & _RESERVED:
        return False
    inflater = isal_zlib.decompressobj(wbits=_GZIP_WINDOW)
    try:
        return bool(inflater.decompress(probe)) or bool(inflater.eof)
    except _BROKEN:
        return False


def has_second_member(path: Path, *, within: int) -> bool:
    """Tell whether a second gzip member begins within so many bytes."""
    return _first_start(path, 1, within) is not None
