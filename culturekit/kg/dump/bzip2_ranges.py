"""A range of a `.bz2` file to plain bytes: the blocks that begin in it, each decompressed by itself.

Blocks begin at any bit, with a mark of 48 bits. Wrapped as a stream of its own, a block decompresses alone and its
checksum is verified; the checksum of a stream is that of its blocks in order, and is verified by who sees them all.
"""

import bz2
from bisect import bisect_left
from collections.abc import Iterator

from culturekit.errors import IntegrityError
from culturekit.kg.dump.members import Chunk, FileRange, damaged

__all__ = ["FIRST_BLOCK", "Bzip2Range", "combined"]

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
