"""Plain bytes to lines: what stands before the first line end and after the last one is kept apart.

A dump is read in runs that begin and end anywhere. The first piece of a run may belong to the last line of the run
before, so that only who sees both runs can tell where that line ends.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from culturekit.errors import IntegrityError
from culturekit.kg.dump.members import Chunk

__all__ = ["MAX_LINE_BYTES", "NOWHERE", "Block", "CutLines", "Line", "Piece", "endless"]

MAX_LINE_BYTES = 256_000_000
"""The largest entity of Wikidata has a few megabytes; beyond this the file is not a dump of lines."""


class Line(msgspec.Struct, gc=False):
    """A whole line without its end, perhaps without its comma: its number in the run, from 1, and where it begins.

    Its content is seen in the chunk that holds it, and copied only where a line lies in several chunks. A struct is
    made in a sixth of the time that a frozen dataclass takes.
    """

    number: int
    member: int
    offset: int
    content: bytes | memoryview


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line, and where it begins."""

    member: int
    offset: int
    content: bytes


class Block(msgspec.Struct, frozen=True):
    """Lines of N-Triples about one entity: number and place of the first of them, and all that are kept."""

    number: int
    member: int
    offset: int
    content: bytes


NOWHERE = Piece(0, 0, b"")

(COMMA,) = b","


class CutLines:
    """Cuts the chunks of a run.

    Iterate over it, then ask for `head`, `tail`, how many line `ends` there were, for the `length` in bytes, and how
    far into which `member` the run went (`carry`). Blocks at its ends are of triples only.
    """

    first: Block | None = None
    last: Block | None = None

    def __init__(self, chunks: Iterable[Chunk], *, name: str) -> None:
        """Nothing is read yet."""
        self.chunks = chunks
        self.name = name
        self.head = NOWHERE
        self.tail = NOWHERE
        self.ends = 0
        self.length = 0
        self.member = 0
        self.carry = 0

    def __iter__(self) -> Iterator[Line]:
        """Give the lines that lie wholly in the run; not its first one."""
        pending: list[bytes] = []
        held, member, offset = 0, 0, 0
        for chunk in self.chunks:
            content, start = chunk.content, 0
            self.length += len(content)
            self.member, self.carry = chunk.member, chunk.offset + len(content)
            view = memoryview(content)
            while (end := content.find(b"\n", start)) >= 0:
                self.ends += 1
                whole: bytes | memoryview
                if pending:
                    pending.append(content[start:end])
                    whole = b"".join(pending).removesuffix(b",")
                    pending.clear()
                    held = 0
                else:
                    member, offset = chunk.member, chunk.offset + start
                    whole = view[start : end - 1 if end > start and content[end - 1] == COMMA else end]
                if self.ends == 1:
                    self.head = Piece(member, offset, bytes(whole))
                else:
                    yield Line(self.ends, member, offset, whole)
                start = end + 1
            if start < len(content):
                if not pending:
                    member, offset = chunk.member, chunk.offset + start
                pending.append(content[start:])
                held += len(content) - start
                if held > MAX_LINE_BYTES:
                    raise endless(self.name, self.ends + 1)
        self.tail = Piece(member, offset, b"".join(pending)) if pending else NOWHERE
        if not self.ends:
            self.head, self.tail = self.tail, NOWHERE


def endless(name: str, number: int) -> IntegrityError:
    """Say that a line does not end."""
    return IntegrityError(
        "a line never ends", where=f"{name}, line {number}", expected=f"at most {MAX_LINE_BYTES:,} bytes"
    )
