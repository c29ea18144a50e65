"""A dump file to part tables: cut into runs, read by all workers, spliced together again."""

import logging
import queue
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice, takewhile
from pathlib import Path

import polars as pl
from msgspec.structs import replace as replace_struct

from culturekit.core.atomic import clear_folder
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.work import Work
from culturekit.kg.dump.cut_lines import NOWHERE, Block, Piece, is_triple
from culturekit.kg.dump.dump_runs import (
    RANGES,
    Bracket,
    Form,
    LineReader,
    Run,
    RunReport,
    Sample,
    Syntax,
    decoder_of,
    read_run,
)
from culturekit.kg.dump.entities import ItemBatch
from culturekit.kg.dump.members import (
    FIRST_BLOCK,
    STDIN,
    Chunk,
    ZstdFrame,
    combined,
    damaged,
    read_chunks,
    read_members,
    second_member,
)
from culturekit.kg.dump.triples import kept_lines, looks_like_triples, subject_of

# Runs of a file to the whole of it: the lines between runs, the numbers of lines and members, the array's brackets.

BRACKET = "not-an-entity"
"""The reason under which a bracket counts that opens or closes nothing."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a run, and what must be added to the places in them; `offset` only within the first member."""

    folder: Path
    count: int
    lines: int
    members: int
    offset: int


@dataclass(slots=True)
class FileReport:
    """What a file held, with lines and members numbered in the file."""

    parts: list[Parts] = field(default_factory=list)
    entities: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    malformed: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)
    members: int = 0
    length: int = 0
    starts: list[tuple[int, int, int]] = field(default_factory=list)
    syntax: Syntax = "json"


class Splice:
    """Takes the reports of a file's runs in their order."""

    def __init__(
        self, name: str, file: int, folder: Path, languages: tuple[str, ...], *, syntax: Syntax = "json"
    ) -> None:
        """Begin at the first line of the file; lines between runs leave their parts in `folder`."""
        clear_folder(folder)
        self.name = name
        self.report = FileReport(syntax=syntax)
        self.seams = LineReader(decoder_of(syntax, languages), ItemBatch(folder, file))
        self.kept = kept_lines(languages) if syntax == "triples" else None
        self.open_block: Block | None = None
        self.brackets: list[Bracket] = []
        self.last_content = 0
        self.open_piece = NOWHERE
        self.lines = 0
        self.offset = 0
        self.checksum = 0

    def add(self, run: RunReport, folder: Path, *, numbered: bool = False) -> None:
        """Add a run; `numbered` says that its members and offsets are those of the file already."""
        members, offset = (0, 0) if numbered else (self.report.members, self.offset)
        self.verify_streams(run)
        head = Piece(run.head.member + members, run.head.offset + (0 if run.head.member else offset), run.head.content)
        self.open_piece = joined(self.open_piece, head)
        if run.ends:
            self.seam(self.open_piece)
            tail = run.tail
            self.open_piece = Piece(tail.member + members, tail.offset + (0 if tail.member else offset), tail.content)
        for end in (run.first, run.last):
            if end is not None:
                begun = end.offset + (0 if end.member else offset)
                self.go_on(Block(end.number + self.lines, end.member + members, begun, end.content))
        self.report.parts.append(Parts(folder, run.parts, self.lines, members, offset))
        self.take(run, members, offset)
        self.lines += run.ends
        self.report.members += run.members
        self.report.length += run.length
        self.offset = run.carry if run.members else self.offset + run.carry

    def take(self, run: RunReport, members: int, offset: int) -> None:
        """Count what the whole lines of a run were."""
        self.report.entities += run.entities
        self.report.kinds.update(run.kinds)
        self.report.malformed.update(run.malformed)
        self.report.left_out.update(run.left_out)
        self.report.samples += [
            Sample(s.line + self.lines, s.member + members, s.offset + (0 if s.member else offset), s.problem)
            for s in run.samples
        ]
        self.report.starts += [
            (member + members, place + (0 if member else offset), begin) for member, place, begin in run.starts
        ]
        self.brackets += [Bracket(bracket.line + self.lines, bracket.closes) for bracket in run.brackets]
        if run.last_content:
            self.last_content = max(self.last_content, run.last_content + self.lines)

    def seam(self, piece: Piece) -> None:
        """Read a line that no run saw whole, or the first line of a run."""
        number, content = self.lines + 1, piece.content
        if self.kept is not None and is_triple(content + b"\n"):
            match = self.kept.match(b"\n" + content + b"\n")
            if match:
                self.go_on(Block(number, piece.member, piece.offset, match[0]))
            return
        if number == 1 and content.lstrip().startswith(b"["):
            self.seams.brackets.append(Bracket(1, closes=False))
            content = content.lstrip()[1:]
        self.seams.read(content.strip(), number, piece.member, piece.offset)

    def go_on(self, block: Block) -> None:
        """Take lines about an entity; where they are about another than those before, that one is complete."""
        before = self.open_block
        if before is not None and subject_of(before.content) == subject_of(block.content):
            self.open_block = replace_struct(before, content=before.content + block.content)
            return
        self.end_block()
        self.open_block = block

    def end_block(self) -> None:
        """Read the entity that was open."""
        if (block := self.open_block) is not None:
            self.seams.read(block.content, block.number, block.member, block.offset)
        self.open_block = None

    def verify_streams(self, run: RunReport) -> None:
        """Hold the checksum of every bzip2 stream against those of its blocks."""
        for ends, value in run.checks:
            if not ends:
                self.checksum = combined(self.checksum, value)
                continue
            if value != self.checksum:
                raise IntegrityError(
                    "damaged: the checksum of a stream is not that of its blocks",
                    where=self.name,
                    found=f"the damage in member {self.report.members}",
                    hint="Nothing was published. Fetch the file again and check it against the published checksum.",
                )
            self.checksum = 0

    def finish(self) -> FileReport:
        """Read the last line, check the brackets, and give the report of the file."""
        if self.open_piece.content:
            self.seam(self.open_piece)
        self.end_block()
        self.seams.batch.write()
        reader, report = self.seams, self.report
        report.parts.append(Parts(reader.batch.folder, reader.batch.parts, 0, 0, 0))
        report.entities += reader.entities
        report.kinds.update(reader.counts())
        report.malformed.update(reader.malformed)
        report.left_out.update(reader.batch.left_out)
        report.samples = sorted(report.samples + reader.samples, key=lambda sample: sample.line)
        self.check_brackets(max(self.last_content, reader.last_content))
        return report

    def check_brackets(self, last_content: int) -> None:
        """An array that is opened and never closed was cut off; a bracket elsewhere is a malformed line."""
        brackets = sorted(self.brackets + self.seams.brackets, key=lambda bracket: bracket.line)
        opened = bool(brackets) and brackets[0] == Bracket(1, closes=False)
        closing = next((bracket for bracket in brackets if bracket.closes), None) if opened else None
        if opened and closing is None:
            member = max(self.report.members - 1, 0)
            raise IntegrityError(
                "the file ends before the array does",
                where=self.name,
                expected="a last line with ]",
                found=f"its end at byte {self.report.length:,} of the JSON, in member {member}",
                hint="Nothing was published. The download was probably cut: fetch the file again.",
            )
        stray = [bracket for bracket in brackets[1:] if bracket is not closing] if opened else brackets
        if closing is not None and max(last_content, *(bracket.line for bracket in brackets)) > closing.line:
            raise IntegrityError(
                "there is more after the end of the array", where=f"{self.name}, after line {closing.line}"
            )
        if stray:
            self.report.malformed[BRACKET] += len(stray)
            self.report.entities += len(stray)
            self.report.samples.append(Sample(stray[0].line, 0, 0, f"{BRACKET}: a bracket without its array"))


def joined(piece: Piece, more: Piece) -> Piece:
    """Put two pieces of a line together; the line begins where its first byte stands."""
    return Piece(piece.member, piece.offset, piece.content + more.content) if piece.content else more


SMALLEST_RANGE, LARGEST_RANGE = 4_000_000, 16_000_000
"""Compressed bytes in a run; the number of workers does not enter, so that a resumed run finds the same ones."""

RANGES_PER_FILE = 64
PROBE = 512_000_000
"""Within so many bytes a second member is looked for; the members of the dumps have about 60 MB."""

FORMS: dict[str, Form] = {".gz": "gzip", ".bz2": "bzip2"}

RUN_BYTES = 8_000_000
"""Plain bytes that one worker takes at a time."""


def read_dump(work: Work, file: int, path: Path, languages: tuple[str, ...]) -> FileReport:
    """Read a file of a dump by its suffix: `.gz`, `.bz2`, `.zst`, anything else as it is; `-` is standard input.

    Whether it holds JSON or triples is seen from its first bytes.
    """
    folder = work.scratch / f"file-{file:05d}"
    folder.mkdir(exist_ok=True)
    if path != STDIN and not path.is_file():
        raise UsageError("there is no such dump file", where=str(path))
    chunks = read_chunks(path)
    begin = list(islice(chunks, 1))
    syntax: Syntax = "triples" if begin and looks_like_triples(begin[0].content) else "json"
    splice = Splice(str(path), file, folder / "seams", languages, syntax=syntax)
    template = Run(file, path, "chunks", 0, 0, exact=True, folder=folder, languages=languages, syntax=syntax)
    if is_stream(path):
        read_stream(work, template, splice, chain(begin, chunks))
    else:
        read_ranges(work, template, splice)
    return splice.finish()


def is_stream(path: Path) -> bool:
    """Tell whether a file can be read from its beginning only."""
    if path == STDIN or path.suffix == ".zst":
        return True
    large = path.stat().st_size > LARGEST_RANGE
    return path.suffix == ".gz" and large and second_member(path, within=PROBE) is None


def read_ranges(work: Work, template: Run, splice: Splice) -> None:
    """Read the ranges of a file, and make sure that each begins where the one before it ends."""
    size = template.path.stat().st_size
    form = FORMS.get(template.path.suffix, "plain")
    unit = 8 if form == "bzip2" else 1
    expected = FIRST_BLOCK if form == "bzip2" else 0
    if size == 0:
        raise damaged(str(template.path), 0, 0, 0, "the file is empty")
    runs = [
        replace(template, form=form, begin=unit * begin, end=unit * end, exact=begin == 0 and form != "bzip2",
                folder=template.folder / f"run-{number:06d}")
        for number, (begin, end) in enumerate(ranges_of(size))
    ]  # fmt: skip
    for run, report in zip(runs, work.engine.map(read_run, runs), strict=True):
        checked, place = in_its_place(run, report, expected, splice.report.members)
        if checked is not None:
            splice.add(checked, place)
            expected = checked.stop
        work.progress.advance((run.end - run.begin) // unit)
        work.progress.tell(totals(splice.report))
    if expected != unit * size:
        end = replace(runs[-1], begin=expected, end=unit * size, exact=True, folder=template.folder / "end")
        splice.add(read_run(end), end.folder)


def ranges_of(size: int) -> Iterator[tuple[int, int]]:
    """Cut a file into ranges of bytes."""
    step = max(SMALLEST_RANGE, min(LARGEST_RANGE, size // RANGES_PER_FILE))
    return ((begin, min(begin + step, size)) for begin in range(0, size, step))


def in_its_place(run: Run, report: RunReport, expected: int, members: int) -> tuple[RunReport | None, Path]:
    """Take a report if its run began where the one before it ended; else read the run again from there."""
    if report.damage is None and report.start == expected:
        return report, run.folder
    if expected >= run.end:
        # What looked like a beginning lies inside what the runs before have read.
        return None, run.folder
    again = replace(run, begin=expected, exact=True, folder=run.folder.with_suffix(".again"), first_member=members)
    return read_run(again), again.folder


def read_stream(work: Work, template: Run, splice: Splice, chunks: Iterable[Chunk]) -> None:
    """Read a file from its beginning, and let all workers decode what comes."""
    number = 0
    for group in chunk_groups(chunks, at_once=4 * work.engine.workers):
        runs = [
            replace(template, chunks=given, folder=template.folder / f"run-{number + place:06d}")
            for place, given in enumerate(group)
        ]
        number += len(runs)
        for run, report in zip(runs, work.engine.map(read_run, runs), strict=True):
            splice.add(report, run.folder, numbered=True)
            work.progress.advance(sum(len(chunk.content) for chunk in run.chunks))
            work.progress.tell(totals(splice.report))
    if not number:
        raise IntegrityError("the dump is empty", where=str(template.path))


def totals(report: FileReport) -> str:
    """Say how much has been read."""
    return f"{report.entities:,} entities, {report.length / 1e6:,.0f} MB of JSON, {report.members:,} members"


def chunk_groups(chunks: Iterable[Chunk], *, at_once: int) -> Iterator[list[tuple[Chunk, ...]]]:
    """Give lists of at most `at_once` runs of chunks, while a thread reads the next list.

    What the reader raises is raised here, after what it had read before.
    """
    waiting: queue.Queue[list[tuple[Chunk, ...]] | BaseException | None] = queue.Queue(maxsize=1)
    stopped = threading.Event()

    def put(what: list[tuple[Chunk, ...]] | BaseException | None) -> None:
        while not stopped.is_set():
            try:
                waiting.put(what, timeout=0.1)
            except queue.Full:
                continue
            return

    def read() -> None:
        try:
            for group in grouped(chunks, at_once):
                put(group)
                if stopped.is_set():
                    return
        except BaseException as error:
            put(error)
        else:
            put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        while (group := waiting.get()) is not None:
            if isinstance(group, BaseException):
                raise group
            yield group
    finally:
        stopped.set()


def grouped(chunks: Iterable[Chunk], at_once: int) -> Iterator[list[tuple[Chunk, ...]]]:
    """Group chunks into runs, and runs into lists."""
    runs: list[tuple[Chunk, ...]] = []
    run: list[Chunk] = []
    size = 0
    for chunk in chunks:
        run.append(chunk)
        size += len(chunk.content)
        if size >= RUN_BYTES:
            runs.append(tuple(run))
            run, size = [], 0
        if len(runs) == at_once:
            yield runs
            runs = []
    if run:
        runs.append(tuple(run))
    if runs:
        yield runs


# One line of a dump by its place, read from the nearest place before it where reading can begin.

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
