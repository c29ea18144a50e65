"""A range of a `.gz` file to plain bytes: the members that begin in it, whole.

A gzip file may be many members one after the other, as the dumps are. No index says where they begin: the mark of a
header is looked for, and what follows must decompress. Whether a find was a member's true start shows in the end: the
members before it must end exactly there.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from isal import igzip_lib, isal_zlib

from culturekit.errors import IntegrityError
from culturekit.kg.dump.members import GZIP_WINDOW, Chunk, FileRange, damaged

__all__ = ["GzipRange", "second_member"]

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
