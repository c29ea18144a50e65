"""Plain bytes to lines: what stands before the first line end and after the last one is kept apart.

A dump is read in runs that begin and end anywhere. The first piece of a run may belong to the last line of the run
before, so that only who sees both runs can tell where that line ends.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from culturekit.core.errors import IntegrityError
from culturekit.kg.dump.members import Chunk
from culturekit.kg.dump.triples import kept_lines

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


# Plain bytes of N-Triples to entities: what `CutLines` is for a dump of one line per entity.
#
# A dump of triples has a line for each label in each language. One pattern finds the few lines that are kept, and
# those about one entity, which stand together, are given as one. The entities at both ends of a run may go on in the
# runs beside it, and are kept apart.

END = b" .\n"
NOT_A_TRIPLE = re.compile(rb"\n(?!#|\n)(?![^\n]* \.\n)[^\n]+")


def is_triple(line: bytes) -> bool:
    """Tell whether a line with its end is a triple by its last bytes, or says nothing."""
    return line.endswith(END) or line.startswith(b"#") or not line.strip()


class CutTriples(CutLines):
    """Cuts the chunks of a run of triples.

    When all is read, `first` and `last` are the entities at its ends; its first line is neither of them.
    """

    def __init__(self, chunks: Iterable[Chunk], *, name: str, languages: tuple[str, ...]) -> None:
        """Nothing is read yet."""
        super().__init__(chunks, name=name)
        self.kept = kept_lines(languages)
        self.entity: bytes | None = None
        self.begun = (0, 0, 0)
        self.lines: list[bytes] = []

    def __iter__(self) -> Iterator[Line]:
        """Give the entities that lie wholly in the run, and lines that are no triples."""
        pending: list[bytes] = []
        held, member, offset = 0, 0, 0
        for chunk in self.chunks:
            content = chunk.content
            self.length += len(content)
            self.member, self.carry = chunk.member, chunk.offset + len(content)
            if not pending:
                member, offset = chunk.member, chunk.offset
            begin, end = content.find(b"\n") + 1, content.rfind(b"\n") + 1
            if end:
                line = b"".join([*pending, content[:begin]])
                pending.clear()
                held = 0
                if not self.ends:
                    self.head = Piece(member, offset, line[:-1])
                else:
                    yield from self.one_line(line, member, offset)
                self.ends += 1
                yield from self.many_lines(chunk, begin, end)
                member, offset = chunk.member, chunk.offset + end
            if end < len(content):
                pending.append(content[end:])
                held += len(content) - end
                if held > MAX_LINE_BYTES:
                    raise endless(self.name, self.ends + 1)
        self.tail = Piece(member, offset, b"".join(pending)) if pending else NOWHERE
        if not self.ends:
            self.head, self.tail = self.tail, NOWHERE
        if self.lines:
            block = Block(*self.begun, b"".join(self.lines))
            self.first, self.last = (block, None) if self.first is None else (self.first, block)

    def one_line(self, line: bytes, member: int, offset: int) -> Iterator[Line]:
        """Take a line that lies in several chunks."""
        if not is_triple(line):
            yield Line(self.ends + 1, member, offset, line)
        elif match := self.kept.match(b"\n" + line):
            yield from self.take(match[1], match[0], (self.ends + 1, member, offset))

    def many_lines(self, chunk: Chunk, begin: int, end: int) -> Iterator[Line]:
        """Take the whole lines of a chunk, between two line ends."""
        content, start, before = chunk.content, begin - 1, self.ends
        count = content.count(b"\n", begin, end)
        if count != content.count(END, begin, end):
            for match in NOT_A_TRIPLE.finditer(content, start, end):
                place = match.start() + 1
                number = before + 1 + content.count(b"\n", begin, place)
                yield Line(number, chunk.member, chunk.offset + place, match[0])
        for match in self.kept.finditer(content, start, end):
            if match[1] == self.entity:
                self.lines.append(match[0])
                continue
            place = match.start() + 1
            before += content.count(b"\n", begin, place)
            begin = place
            yield from self.take(match[1], match[0], (before + 1, chunk.member, chunk.offset + place))
        self.ends += count

    def take(self, entity: bytes, line: bytes, place: tuple[int, int, int]) -> Iterator[Line]:
        """Take a kept line; where it is about another entity than the one before, that one is complete."""
        if entity != self.entity:
            if self.lines:
                whole = b"".join(self.lines)
                if self.first is None:
                    self.first = Block(*self.begun, whole)
                else:
                    yield Line(*self.begun, whole)
            self.entity, self.begun, self.lines = entity, place, []
        self.lines.append(line)
