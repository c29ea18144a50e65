"""Plain bytes of N-Triples to entities: what `CutLines` is for a dump of one line per entity.

A dump of triples has a line for each label in each language. One pattern finds the few lines that are kept, and those
about one entity, which stand together, are given as one. The entities at both ends of a run may go on in the runs
beside it, and are kept apart.
"""

import re
from collections.abc import Iterable, Iterator

from culturekit.kg.dump.cut_lines import MAX_LINE_BYTES, NOWHERE, Block, CutLines, Line, Piece, endless
from culturekit.kg.dump.members import Chunk
from culturekit.kg.dump.triples import kept_lines

__all__ = ["CutTriples", "is_triple"]

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
