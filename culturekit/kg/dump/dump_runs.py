"""Runs of a dump: pieces of a file that one worker reads by itself, each leaving parts and a report.

A report is written when its parts are on disk, and both are sealed. A sealed run need not be read again, so that a
killed ingest goes on where it was, run by run.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from culturekit.core.atomic import clear_folder, sync_tree, write_atomically
from culturekit.core.errors import IntegrityError
from culturekit.core.stage_folder import is_sealed, seal
from culturekit.kg.dump.cut_lines import Block, CutLines, CutTriples, Piece
from culturekit.kg.dump.entities import Decode, Item, ItemBatch, Malformed, decoder_for
from culturekit.kg.dump.members import Bzip2Range, Chunk, FileRange, GzipRange
from culturekit.kg.dump.triples import triples_decoder

Form: TypeAlias = Literal["gzip", "bzip2", "plain", "chunks"]
"""How a run finds its bytes: as a range of a file, or given along."""

Syntax: TypeAlias = Literal["json", "triples"]
"""What stands in them: a line per entity, or N-Triples, of which an entity has many."""

CHUNK_BYTES = 1_000_000


class PlainRange(FileRange):
    """The bytes of a file from `begin` to before `end`, of one member; offsets are counted from `begin`."""

    __slots__ = ()

    def chunks(self) -> Iterator[Chunk]:
        """Read the bytes."""
        self.start = position = self.begin
        self.starts.append((0, 0, position))
        with self.path.open("rb") as file:
            file.seek(position)
            while content := file.read(min(CHUNK_BYTES, self.end - position)):
                yield Chunk(0, position - self.begin, content)
                position += len(content)
        self.stop = position


@dataclass(slots=True)
class GivenChunks(FileRange):
    """Chunks that somebody else has read; their members are numbered in the file."""

    given: tuple[Chunk, ...] = ()

    def chunks(self) -> Iterator[Chunk]:
        """Give them again."""
        self.start = 0
        self.starts = [(chunk.member, chunk.offset, chunk.begin) for chunk in self.given if chunk.begin is not None]
        return iter(self.given)


RANGES: dict[str, Callable[..., FileRange]] = {"gzip": GzipRange, "bzip2": Bzip2Range, "plain": PlainRange}
SAMPLES = 3
"""How many malformed lines of a run are kept."""


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


class RunReport(msgspec.Struct, kw_only=True):
    """What a run held. Lines and members are counted within it; its first line and its last piece stand apart."""

    start: int | None
    stop: int
    members: int
    head: Piece
    tail: Piece
    ends: int
    length: int
    carry: int
    entities: int = 0
    kinds: dict[str, int] = {}
    malformed: dict[str, int] = {}
    left_out: dict[str, int] = {}
    samples: list[Sample] = []
    brackets: list[Bracket] = []
    last_content: int = 0
    parts: int = 0
    first: Block | None = None
    last: Block | None = None
    """Of triples: the entities at both ends, which may go on in other runs."""
    starts: list[tuple[int, int, int]] = []
    """Where reading can begin; see `FileRange`."""
    checks: list[tuple[int, int]] = []
    """Of bzip2: the checksum of each block, and of each stream that ends; see `bzip2_ranges`."""
    damage: str | None = None
    """Why the run could not be read; it matters only where the run begins where it should."""


class LineReader:
    """Decodes lines and counts what they are."""

    def __init__(self, decode: Decode, batch: ItemBatch) -> None:
        """Begin with nothing counted."""
        self.decode = decode
        self.batch = batch
        self.kinds: dict[str, int] = {}
        self.malformed: dict[str, int] = {}
        self.samples: list[Sample] = []
        self.brackets: list[Bracket] = []
        self.entities = 0
        self.items = 0
        self.last_content = 0

    def read(self, content: bytes | memoryview, number: int, member: int, offset: int) -> None:
        """Read a line: an entity, with or without a comma, a bracket of the array, or nothing."""
        try:
            decoded = self.decode(content)
        except Malformed:
            self.read_oddity(bytes(content), number, member, offset)
        else:
            self.take(decoded, number, member, offset)

    def read_oddity(self, content: bytes, number: int, member: int, offset: int) -> None:
        """Read a line that is no entity as it stands."""
        text = content.strip()
        if text in {b"[", b"]"}:
            self.brackets.append(Bracket(number, text == b"]"))
            return
        stripped = text.removesuffix(b",").rstrip()
        if not stripped:
            return
        try:
            decoded = self.decode(stripped)
        except Malformed as error:
            self.last_content = number
            self.entities += 1
            self.malformed[error.reason] = self.malformed.get(error.reason, 0) + 1
            if len(self.samples) < SAMPLES:
                self.samples.append(Sample(number, member, offset, str(error)))
        else:
            self.take(decoded, number, member, offset)

    def take(self, decoded: Item | str, number: int, member: int, offset: int) -> None:
        """Take an item, or count what is none."""
        self.last_content = number
        self.entities += 1
        if isinstance(decoded, Item):
            self.items += 1
            self.batch.add(decoded, member, number, offset)
        else:
            self.kinds[decoded] = self.kinds.get(decoded, 0) + 1

    def counts(self) -> dict[str, int]:
        """Count entities by kind."""
        return {**self.kinds, "item": self.items} if self.items else dict(self.kinds)


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
    source = source_of(run)
    lines = cut(run, source.chunks())
    reader = LineReader(decoder_of(run.syntax, run.languages), ItemBatch(run.folder, run.file))
    try:
        with without_collection():
            for line in lines:
                reader.read(line.content, line.number, line.member, line.offset)
    except IntegrityError as error:
        if run.exact:
            raise
        return report_of(source, CutLines((), name=""), None, damage=str(error))
    reader.batch.write()
    return report_of(source, lines, reader)


def cut(run: Run, chunks: Iterator[Chunk]) -> CutLines:
    """Choose how bytes become entities."""
    if run.syntax == "triples":
        return CutTriples(chunks, name=str(run.path), languages=run.languages)
    return CutLines(chunks, name=str(run.path))


def decoder_of(syntax: Syntax, languages: tuple[str, ...]) -> Decode:
    """Choose how entities are decoded."""
    return triples_decoder(languages) if syntax == "triples" else decoder_for(languages)


@contextmanager
def without_collection() -> Iterator[None]:
    """Spare the search for cycles, of which decoded items have none: it would walk over all that wait."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def source_of(run: Run) -> FileRange:
    """Choose how the bytes of a run are found."""
    if run.form == "chunks":
        return GivenChunks(run.path, 0, 0, given=run.chunks)
    return RANGES[run.form](run.path, run.begin, run.end, exact=run.exact, first_member=run.first_member)


def report_of(source: FileRange, lines: CutLines, reader: LineReader | None, *, damage: str | None = None) -> RunReport:
    """Write down what a run held."""
    carry = lines.carry if lines.member == source.members else 0
    report = RunReport(
        start=source.start, stop=source.stop, members=source.members, starts=source.starts, checks=source.checks,
        head=lines.head, tail=lines.tail, first=lines.first, last=lines.last, ends=lines.ends, length=lines.length,
        carry=carry, damage=damage,
    )  # fmt: skip
    if reader is not None:
        report.entities, report.kinds, report.malformed = reader.entities, reader.counts(), reader.malformed
        report.samples, report.brackets, report.parts = reader.samples, reader.brackets, reader.batch.parts
        report.last_content, report.left_out = reader.last_content, reader.batch.left_out
    return report
