"""One line of a dump by its place, read from the nearest place before it where reading can begin."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, takewhile
from pathlib import Path

import polars as pl

from culturekit.errors import IntegrityError
from culturekit.kg.dump.dump_runs import RANGES
from culturekit.kg.dump.members import Chunk, ZstdFrame, read_chunks, read_members
from culturekit.kg.dump.read_dump import FORMS
from culturekit.kg.dump.triples import subject_of

__all__ = ["read_line"]

logger = logging.getLogger(__name__)

FAR = 4_000_000_000
"""Plain bytes that take long enough to decompress, some five seconds, for the reader to be told why."""

STRETCH = 8_000_000
"""Compressed bytes that are looked through at once."""


def read_line(dump: Path, *, member: int, offset: int, starts: pl.DataFrame | None = None) -> str:
    """Read the line that begins at an offset of a decompressed member, without its comma; of triples all of an entity.

    `starts` has the places of this file where reading can begin (`STARTS`); without them it begins at the beginning.
    """
    lines = lines_from(dump, member, offset, starts)
    first = next(lines, b"")
    if not first:
        raise IntegrityError("the dump has no such line", where=str(dump), found=f"member {member}, byte {offset}")
    if entity := subject_of(first):
        about = chain([first], takewhile(lambda line: subject_of(line) in {entity, None}, lines))
        return b"\n".join(line for line in about if subject_of(line)).decode("utf-8")
    return first.decode("utf-8").strip().removesuffix(",")


def lines_from(dump: Path, member: int, offset: int, starts: pl.DataFrame | None) -> Iterator[bytes]:
    """Read the lines that begin at an offset or after it."""
    content = b""
    for chunk in chunks_near(dump, member, offset, starts):
        if chunk.member < member or (chunk.member == member and chunk.offset + len(chunk.content) <= offset):
            continue
        content += chunk.content[max(0, offset - chunk.offset) if chunk.member == member else 0 :]
        *whole, content = content.split(b"\n")
        yield from whole
    if content:
        yield content


def chunks_near(dump: Path, member: int, offset: int, starts: pl.DataFrame | None) -> Iterator[Chunk]:
    """Read a dump from the nearest place before a line."""
    before = (pl.col("member") < member) | ((pl.col("member") == member) & (pl.col("offset") <= offset))
    near = starts.filter(before).sort("member", "offset").tail(1) if starts is not None else pl.DataFrame()
    if near.is_empty():
        return read_chunks(dump)
    first, place, begin = near.row(0)[-3:]
    if first == member and offset - place > FAR:
        logger.warning(
            "%s is one member: %.0f GB before the line are decompressed first; the published dumps have many",
            dump, (offset - place) / 1e9,
        )  # fmt: skip
    return (
        replace(chunk, member=chunk.member + first, offset=chunk.offset + (0 if chunk.member else place))
        for chunk in (frames_from if dump.suffix == ".zst" else ranges_from)(dump, begin)
    )


def ranges_from(dump: Path, begin: int) -> Iterator[Chunk]:
    """Read a file from a member, a block or a byte on, a stretch at a time; all is counted from there."""
    form = FORMS.get(dump.suffix, "plain")
    unit = 8 if form == "bzip2" else 1
    end, member, carry = unit * dump.stat().st_size, 0, 0
    while begin < end:
        stretch = RANGES[form](dump, begin, min(begin + unit * STRETCH, end))
        within = last = 0
        for chunk in stretch.chunks():
            last, offset = chunk.member, chunk.offset + (0 if chunk.member else carry)
            within = offset + len(chunk.content)
            yield replace(chunk, member=last + member, offset=offset)
        carry = within if last == stretch.members else 0
        begin, member = stretch.stop, member + stretch.members


def frames_from(dump: Path, begin: int) -> Iterator[Chunk]:
    """Read zstd from a frame on."""
    with dump.open("rb") as file:
        file.seek(begin)
        yield from read_members(file, ZstdFrame, name=str(dump))
