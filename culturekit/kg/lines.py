"""Plain bytes to entity lines: the array's brackets and commas gone, the place of each line kept."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from culturekit.errors import IntegrityError
from culturekit.kg.members import Chunk

__all__ = ["Line", "entity_lines", "split_lines"]

MAX_LINE_BYTES = 256_000_000
"""The largest entity of Wikidata has a few megabytes; beyond this the file is not a dump of lines."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number in the file, counted from 1, and the member and the offset where it begins."""

    number: int
    member: int
    offset: int
    content: bytes


def split_lines(chunks: Iterable[Chunk], *, name: str) -> Iterator[Line]:
    """Cut chunks at line ends; a line may run on into the next member."""
    number, member, offset = 1, 0, 0
    pending: list[bytes] = []
    for chunk in chunks:
        start = 0
        while (end := chunk.content.find(b"\n", start)) >= 0:
            if not pending:
                member, offset = chunk.member, chunk.offset + start
            pending.append(chunk.content[start:end])
            yield Line(number, member, offset, b"".join(pending))
            number += 1
            pending.clear()
            start = end + 1
        if start < len(chunk.content):
            if not pending:
                member, offset = chunk.member, chunk.offset + start
            pending.append(chunk.content[start:])
            if sum(map(len, pending)) > MAX_LINE_BYTES:
                raise IntegrityError(
                    "a line never ends", where=f"{name}, line {number}", expected=f"at most {MAX_LINE_BYTES:,} bytes"
                )
    if pending:
        yield Line(number, member, offset, b"".join(pending))


def entity_lines(chunks: Iterable[Chunk], *, name: str) -> Iterator[Line]:
    """Give the lines that hold entities: of an array, one a line, or of a file of JSON lines.

    An array that is opened and never closed was cut off, and is an error.
    """
    opened = closed = False
    for line in split_lines(chunks, name=name):
        content = line.content.strip()
        if content.startswith(b"[") and not opened and line.number == 1:
            opened, content = True, content[1:].strip()
        if opened and content == b"]":
            closed, content = True, b""
        elif content and closed:
            raise IntegrityError("there is more after the end of the array", where=f"{name}, line {line.number}")
        content = content.removesuffix(b",")
        if content:
            yield Line(line.number, line.member, line.offset, content)
    if opened and not closed:
        raise IntegrityError(
            "the file ends before the array does",
            where=name,
            expected="a last line with ]",
            hint="Nothing was published. The download was probably cut: fetch the file again.",
        )
