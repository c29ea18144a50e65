"""Runs of a dump: pieces of a file that one worker reads by itself, each leaving parts and a report.

A run begins and ends anywhere. Its first piece of a line may belong to the last line of the run before, so that only
who sees both runs can tell where that line ends: both pieces stand apart in the report. A report is written when its
parts are on disk, and both are sealed. A sealed run need not be read again, so that a killed ingest goes on where it
was, run by run.
"""

import gc
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from culturekit.core.atomic import clear_folder, sync_tree, write_atomically
from culturekit.core.errors import IntegrityError
from culturekit.core.stage import is_sealed, seal
from culturekit.kg.dump.entities import Decode, Item, ItemBatch, Malformed, decoder_for
from culturekit.kg.dump.members import Bzip2Range, Chunk, FileRange, GzipRange
from culturekit.kg.dump.triples import kept_lines, triples_decoder

# How a run finds its bytes: as a range of a file, or given along.
Form: TypeAlias = Literal["gzip", "bzip2", "plain", "chunks"]
# What stands in them: a line per entity, or N-Triples, of which an entity has many.
Syntax: TypeAlias = Literal["json", "triples"]

# The largest entity of Wikidata has a few megabytes; beyond this the file is not a dump of lines.
_MAX_LINE_BYTES = 256_000_000
_SAMPLES = 3  # malformed lines that are kept of a run
(_COMMA,) = b","


class Line(msgspec.Struct, gc=False):
    """A line without its end, perhaps without its comma: its number in the run, from 1, and where it begins.

    Its content is seen in the chunk that holds it, and copied only where a line lies in several chunks. A struct is
    made in a sixth of the time that a frozen dataclass takes.
    """

    number: int
    member: int
    offset: int
    content: bytes | memoryview


class Piece(msgspec.Struct, frozen=True):
    """A part of a line, or lines of N-Triples about one entity: where it begins, as in `Line`."""

    number: int
    member: int
    offset: int
    content: bytes


NOWHERE = Piece(0, 0, 0, b"")


class CutLines:
    """Cuts the chunks of a run into lines.

    Iterate over it, then ask for `head`, `tail`, how many line `ends` there were, for the `length` in bytes, and how
    far into which `member` the run went (`carry`). `first` and `last`, the entities at its ends, are of triples only.
    """

    def __init__(self, chunks: Iterable[Chunk], *, name: str) -> None:
        """Nothing is read yet."""
        self.chunks, self.name = chunks, name
        self.head = self.tail = NOWHERE
        self.first: Piece | None = None
        self.last: Piece | None = None
        self.ends = self.length = self.member = self.carry = 0

    def __iter__(self) -> Iterator[Line]:
        """Yield the lines that lie wholly in the run; not its first one."""
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
                    whole = view[start : end - 1 if end > start and content[end - 1] == _COMMA else end]
                if self.ends == 1:
                    self.head = Piece(1, member, offset, bytes(whole))
                else:
                    yield Line(self.ends, member, offset, whole)
                start = end + 1
            if start < len(content):
                if not pending:
                    member, offset = chunk.member, chunk.offset + start
                pending.append(content[start:])
                held = self._held(held + len(content) - start)
        self._end(pending, member, offset)

    def _held(self, size: int) -> int:
        """Refuse to hold more of a line than any line has."""
        if size > _MAX_LINE_BYTES:
            where = f"{self.name}, line {self.ends + 1}"
            raise IntegrityError("a line never ends", where=where, expected=f"at most {_MAX_LINE_BYTES:,} bytes")
        return size

    def _end(self, pending: list[bytes], member: int, offset: int) -> None:
        """Keep what stands after the last line end; without any line end it is the head."""
        if pending:
            self.tail = Piece(self.ends + 1, member, offset, b"".join(pending))
        if not self.ends:
            self.head, self.tail = self.tail, NOWHERE


# N-Triples have a line for each label in each language. One pattern finds the few lines that are kept, and those about
# one entity, which stand together, become one. The entities at both ends of a run may go on in the runs beside it.

_END = b" .\n"
_NOT_A_TRIPLE = re.compile(rb"\n(?!#|\n)(?![^\n]* \.\n)[^\n]+")


def is_triple(line: bytes) -> bool:
    """Tell whether a line with its end is a triple by its last bytes, or says nothing."""
    return line.endswith(_END) or line.startswith(b"#") or not line.strip()


class _CutTriples(CutLines):
    """Cuts the chunks of a run of triples into entities; its first line belongs to neither `first` nor `last`."""

    def __init__(self, chunks: Iterable[Chunk], *, name: str, languages: tuple[str, ...]) -> None:
        super().__init__(chunks, name=name)
        self.kept = kept_lines(languages)
        self.entity: bytes | None = None
        self.begun = (0, 0, 0)
        self.lines: list[bytes] = []

    def __iter__(self) -> Iterator[Line]:
        """Yield the entities that lie wholly in the run, and lines that are no triples."""
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
                    self.head = Piece(1, member, offset, line[:-1])
                elif not is_triple(line):
                    yield Line(self.ends + 1, member, offset, line)
                elif match := self.kept.match(b"\n" + line):
                    yield from self._take(match[1], match[0], (self.ends + 1, member, offset))
                self.ends += 1
                yield from self._whole_lines(chunk, begin, end)
                member, offset = chunk.member, chunk.offset + end
            if end < len(content):
                pending.append(content[end:])
                held = self._held(held + len(content) - end)
        self._end(pending, member, offset)
        if self.lines:
            block = Piece(*self.begun, b"".join(self.lines))
            self.first, self.last = (block, None) if self.first is None else (self.first, block)

    def _whole_lines(self, chunk: Chunk, begin: int, end: int) -> Iterator[Line]:
        """Take the whole lines of a chunk, between two line ends."""
        content, start, before = chunk.content, begin - 1, self.ends
        count = content.count(b"\n", begin, end)
        if count != content.count(_END, begin, end):
            for match in _NOT_A_TRIPLE.finditer(content, start, end):
                at = match.start() + 1
                number = before + 1 + content.count(b"\n", begin, at)
                yield Line(number, chunk.member, chunk.offset + at, match[0])
        for match in self.kept.finditer(content, start, end):
            if match[1] == self.entity:
                self.lines.append(match[0])
                continue
            at = match.start() + 1
            before += content.count(b"\n", begin, at)
            begin = at
            yield from self._take(match[1], match[0], (before + 1, chunk.member, chunk.offset + at))
        self.ends += count

    def _take(self, entity: bytes, line: bytes, begins: tuple[int, int, int]) -> Iterator[Line]:
        """Take a kept line; where it is about another entity than the one before, that one is complete."""
        if entity != self.entity:
            if self.lines:
                whole = b"".join(self.lines)
                if self.first is None:
                    self.first = Piece(*self.begun, whole)
                else:
                    yield Line(*self.begun, whole)
            self.entity, self.begun, self.lines = entity, begins, []
        self.lines.append(line)


@dataclass(slots=True)
class _GivenChunks(FileRange):
    """Chunks that the caller has read already; their members are numbered as in the file."""

    given: tuple[Chunk, ...] = ()

    def chunks(self) -> Iterator[Chunk]:
        """Yield them again."""
        self.start = 0
        self.starts = [(chunk.member, chunk.offset, chunk.begin) for chunk in self.given if chunk.begin is not None]
        return iter(self.given)


RANGES: dict[str, type[FileRange]] = {"gzip": GzipRange, "bzip2": Bzip2Range, "plain": FileRange}


@dataclass(frozen=True, slots=True)
class Run:
    """A work item: what to read, and where its parts go."""

    file: int
    path: Path
    form: Form
    begin: int
    end: int
    exact: bool
    folder: Path
    languages: tuple[str, ...]
    syntax: Syntax = "json"
    chunks: tuple[Chunk, ...] = ()
    first_member: int = 0


class Bracket(msgspec.Struct, frozen=True):
    """A line that is a bracket of the array."""

    line: int
    closes: bool


class Sample(msgspec.Struct, frozen=True):
    """A malformed line."""

    line: int
    member: int
    offset: int
    problem: str


class Tally(msgspec.Struct):
    """What lines were: entities by kind, malformed ones by reason with samples, brackets, and the last with content."""

    entities: int = 0
    kinds: dict[str, int] = {}
    malformed: dict[str, int] = {}
    left_out: dict[str, int] = {}
    samples: list[Sample] = []
    brackets: list[Bracket] = []
    last_content: int = 0

    def add(self, more: "Tally", *, lines: int = 0, members: int = 0, offset: int = 0) -> None:
        """Add what a run counted, which begins after so many lines and members, so far into the first member."""
        self.entities += more.entities
        for counts, added in (
            (self.kinds, more.kinds), (self.malformed, more.malformed), (self.left_out, more.left_out)
        ):  # fmt: skip
            for name, count in added.items():
                counts[name] = counts.get(name, 0) + count
        self.samples += [
            Sample(s.line + lines, s.member + members, s.offset + (0 if s.member else offset), s.problem)
            for s in more.samples
        ]
        self.brackets += [Bracket(bracket.line + lines, bracket.closes) for bracket in more.brackets]
        if more.last_content:
            self.last_content = max(self.last_content, more.last_content + lines)


class RunReport(msgspec.Struct, kw_only=True):
    """What a run held. Lines and members are counted within it; its first line and its last piece stand apart.

    Attributes:
        first: of triples: the entities at both ends, which may go on in other runs.
        last: see `first`.
        starts: where reading can begin; see `FileRange`, as for `checks`.
        damage: why the run could not be read; it matters only where the run begins where it should.
    """

    start: int | None
    stop: int
    members: int
    head: Piece
    tail: Piece
    ends: int
    length: int
    carry: int
    tally: Tally
    parts: int
    first: Piece | None
    last: Piece | None
    starts: list[tuple[int, int, int]]
    checks: list[tuple[int, int]]
    damage: str | None


class LineReader:
    """Decodes lines and counts what they are."""

    def __init__(self, folder: Path, file: int, syntax: Syntax, languages: tuple[str, ...]) -> None:
        """Begin with nothing counted; items become parts in `folder`."""
        self.decode: Decode = triples_decoder(languages) if syntax == "triples" else decoder_for(languages)
        self.tally = Tally()
        self.batch = ItemBatch(folder, file, self.tally.left_out)

    def read(self, content: bytes | memoryview, number: int, member: int, offset: int) -> None:
        """Read a line: an entity, with or without a comma, a bracket of the array, or nothing."""
        try:
            decoded = self.decode(content)
        except Malformed:
            self._read_oddity(bytes(content), number, member, offset)
        else:
            self._take(decoded, number, member, offset)

    def _read_oddity(self, content: bytes, number: int, member: int, offset: int) -> None:
        """Read a line that is no entity as it stands."""
        text, tally = content.strip(), self.tally
        if text in {b"[", b"]"}:
            tally.brackets.append(Bracket(number, text == b"]"))
            return
        stripped = text.removesuffix(b",").rstrip()
        if not stripped:
            return
        try:
            decoded = self.decode(stripped)
        except Malformed as error:
            tally.last_content = number
            tally.entities += 1
            tally.malformed[error.reason] = tally.malformed.get(error.reason, 0) + 1
            if len(tally.samples) < _SAMPLES:
                tally.samples.append(Sample(number, member, offset, str(error)))
        else:
            self._take(decoded, number, member, offset)

    def _take(self, decoded: Item | str, number: int, member: int, offset: int) -> None:
        """Take an item, or count what is none."""
        tally = self.tally
        tally.last_content = number
        tally.entities += 1
        if isinstance(decoded, Item):
            self.batch.add(decoded, member, number, offset)
            decoded = "item"
        tally.kinds[decoded] = tally.kinds.get(decoded, 0) + 1


def read_run(run: Run) -> RunReport:
    """Read a run, unless its report and its parts are there already, as they were sealed."""
    path = run.folder / "done.json"
    if is_sealed(path):
        return msgspec.json.decode(path.read_bytes(), type=RunReport)
    clear_folder(run.folder)
    report = fresh_report(run)
    parts = sorted(run.folder.iterdir())
    sync_tree(run.folder)
    write_atomically(path, msgspec.json.encode(report))
    seal(path, parts)
    return report


def fresh_report(run: Run) -> RunReport:
    """Read the bytes of a run, cut them into lines and decode these."""
    source: FileRange
    if run.form == "chunks":
        source = _GivenChunks(run.path, 0, 0, given=run.chunks)
    else:
        source = RANGES[run.form](run.path, run.begin, run.end, exact=run.exact, first_member=run.first_member)
    lines = CutLines(source.chunks(), name=str(run.path))
    if run.syntax == "triples":
        lines = _CutTriples(source.chunks(), name=str(run.path), languages=run.languages)
    reader, damage = LineReader(run.folder, run.file, run.syntax, run.languages), None
    collecting = gc.isenabled()
    try:
        gc.disable()  # decoded items have no cycles, and the search for them would walk over all that wait
        for line in lines:
            reader.read(line.content, line.number, line.member, line.offset)
    except IntegrityError as error:
        if run.exact:
            raise
        lines, reader, damage = CutLines((), name=""), LineReader(run.folder, 0, "json", run.languages), str(error)
    finally:
        if collecting:
            gc.enable()
    reader.batch.write()
    return RunReport(
        start=source.start, stop=source.stop, members=source.members, starts=source.starts, checks=source.checks,
        head=lines.head, tail=lines.tail, first=lines.first, last=lines.last, ends=lines.ends, length=lines.length,
        carry=lines.carry if lines.member == source.members else 0, tally=reader.tally, parts=reader.batch.parts,
        damage=damage,
    )  # fmt: skip
