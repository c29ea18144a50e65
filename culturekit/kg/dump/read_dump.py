"""Read a dump file to part tables: cut it into runs, let all workers read them, splice them together again."""

import logging
import queue
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice, takewhile
from pathlib import Path

import polars as pl
from msgspec.structs import replace as replace_struct

from culturekit.core.atomic import clear_folder
from culturekit.core.errors import IntegrityError
from culturekit.core.stage import Work
from culturekit.kg.dump.members import (
    FIRST_BLOCK,
    STDIN,
    Chunk,
    combined,
    damaged,
    has_second_member,
    is_archive,
    read_chunks,
)
from culturekit.kg.dump.runs import (
    NOWHERE,
    RANGES,
    Bracket,
    Form,
    LineReader,
    Piece,
    Run,
    RunReport,
    Sample,
    Syntax,
    Tally,
    is_triple,
    read_run,
)
from culturekit.kg.dump.triples import kept_lines, looks_like_triples, subject_of

logger = logging.getLogger(__name__)

_BRACKET = "not-an-entity"  # the reason under which a bracket counts that opens or closes nothing


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a run, and what must be added to the positions in them; `offset` only within the first member."""

    folder: Path
    count: int
    lines: int = 0
    members: int = 0
    offset: int = 0


@dataclass(slots=True)
class FileReport:
    """What a file held, with lines and members numbered in the file."""

    syntax: Syntax
    tally: Tally = field(default_factory=Tally)
    parts: list[Parts] = field(default_factory=list)
    starts: list[tuple[int, int, int]] = field(default_factory=list)
    members: int = 0
    length: int = 0

    def __str__(self) -> str:
        """Say how much has been read."""
        return f"{self.tally.entities:,} entities, {self.length / 1e6:,.0f} MB of JSON, {self.members:,} members"


class _Splice:
    """Takes the reports of a file's runs in their order; lines between runs leave their parts in `folder`."""

    def __init__(self, name: str, file: int, folder: Path, languages: tuple[str, ...], syntax: Syntax) -> None:
        """Begin at the first line of the file."""
        clear_folder(folder)
        self.name, self.folder = name, folder
        self.report = FileReport(syntax)
        self.seams = LineReader(folder, file, syntax, languages)
        self.kept = kept_lines(languages) if syntax == "triples" else None
        self.open_entity: Piece | None = None
        self.open_piece = NOWHERE
        self.lines = self.offset = self.checksum = 0

    def add(self, run: RunReport, folder: Path, *, numbered: bool = False) -> None:
        """Add a run; `numbered` says that its members and offsets are those of the file already."""
        report = self.report
        members, offset = (0, 0) if numbered else (report.members, self.offset)

        def moved(piece: Piece) -> Piece:
            begin = piece.offset + (0 if piece.member else offset)
            return Piece(piece.number + self.lines, piece.member + members, begin, piece.content)

        self._verify_streams(run)
        head, before = moved(run.head), self.open_piece
        self.open_piece = replace_struct(before, content=before.content + head.content) if before.content else head
        if run.ends:
            self._seam(self.open_piece)
            self.open_piece = moved(run.tail)
        for end in (run.first, run.last):
            if end is not None:
                self._go_on(moved(end))
        report.parts.append(Parts(folder, run.parts, self.lines, members, offset))
        report.tally.add(run.tally, lines=self.lines, members=members, offset=offset)
        report.starts += [(member + members, at + (0 if member else offset), begin) for member, at, begin in run.starts]
        report.members += run.members
        report.length += run.length
        self.lines += run.ends
        self.offset = run.carry if run.members else self.offset + run.carry

    def _seam(self, piece: Piece) -> None:
        """Read a line that no run saw whole, or the first line of a run."""
        content = piece.content
        if self.kept is not None and is_triple(content + b"\n"):
            if match := self.kept.match(b"\n" + content + b"\n"):
                self._go_on(replace_struct(piece, content=match[0]))
            return
        if piece.number == 1 and content.lstrip().startswith(b"["):
            self.seams.tally.brackets.append(Bracket(1, closes=False))
            content = content.lstrip()[1:]
        self.seams.read(content.strip(), piece.number, piece.member, piece.offset)

    def _go_on(self, lines: Piece) -> None:
        """Take lines about an entity; where they are about another than those before, that one is complete."""
        before = self.open_entity
        if before is not None and subject_of(before.content) == subject_of(lines.content):
            lines = replace_struct(before, content=before.content + lines.content)
        else:
            self._end_entity()
        self.open_entity = lines

    def _end_entity(self) -> None:
        """Read the entity that is open."""
        if (lines := self.open_entity) is not None:
            self.seams.read(lines.content, lines.number, lines.member, lines.offset)
        self.open_entity = None

    def _verify_streams(self, run: RunReport) -> None:
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
            self._seam(self.open_piece)
        self._end_entity()
        self.seams.batch.write()
        report = self.report
        report.parts.append(Parts(self.folder, self.seams.batch.parts))
        report.tally.add(self.seams.tally)
        report.tally.samples.sort(key=lambda sample: sample.line)
        self._check_brackets(report.tally)
        return report

    def _check_brackets(self, tally: Tally) -> None:
        """Refuse an array that is opened and never closed; a bracket elsewhere is a malformed line."""
        brackets = sorted(tally.brackets, key=lambda bracket: bracket.line)
        opened = bool(brackets) and brackets[0] == Bracket(1, closes=False)
        closing = next((bracket for bracket in brackets if bracket.closes), None) if opened else None
        if opened and closing is None:
            member = max(self.report.members - 1, 0)
            raise IntegrityError(
                "the file ends before the array does", where=self.name, expected="a last line with ]",
                found=f"its end at byte {self.report.length:,} of the JSON, in member {member}",
                hint="Nothing was published. The download was probably cut: fetch the file again.",
            )  # fmt: skip
        stray = [bracket for bracket in brackets[1:] if bracket is not closing] if opened else brackets
        if closing is not None and max(tally.last_content, brackets[-1].line) > closing.line:
            raise IntegrityError(
                "there is more after the end of the array", where=f"{self.name}, after line {closing.line}"
            )
        if stray:
            tally.malformed[_BRACKET] = tally.malformed.get(_BRACKET, 0) + len(stray)
            tally.entities += len(stray)
            tally.samples.append(Sample(stray[0].line, 0, 0, f"{_BRACKET}: a bracket without its array"))


# Compressed bytes in a run; the number of workers does not enter, so that a resumed run finds the same ones.
_SMALLEST_RANGE, _LARGEST_RANGE = 4_000_000, 16_000_000
_RANGES_PER_FILE = 64
# Within so many bytes a second member is searched for; the members of the dumps have about 60 MB.
_PROBE = 512_000_000
_FORMS: dict[str, Form] = {".gz": "gzip", ".bz2": "bzip2"}
_RUN_BYTES = 8_000_000  # plain bytes that one worker takes at a time


def read_dump(work: Work, file: int, path: Path, languages: tuple[str, ...]) -> FileReport:
    """Read a file of a dump by its suffix: `.gz`, `.bz2`, `.zst`, anything else as it is; `-` is standard input.

    Whether it holds JSON or triples is seen from its first bytes.
    """
    folder = work.scratch / f"file-{file:05d}"
    folder.mkdir(exist_ok=True)
    chunks = read_chunks(path)
    begin = list(islice(chunks, 1))
    syntax: Syntax = "triples" if begin and looks_like_triples(begin[0].content) else "json"
    splice = _Splice(str(path), file, folder / "seams", languages, syntax)
    template = Run(file, path, "chunks", 0, 0, exact=True, folder=folder, languages=languages, syntax=syntax)
    # From its beginning only is read what has no second place to begin at.
    large = path != STDIN and path.stat().st_size > _LARGEST_RANGE
    of_one = path.suffix == ".gz" and large and not has_second_member(path, within=_PROBE)
    if path == STDIN or path.suffix == ".zst" or of_one or is_archive(path):
        _read_stream(work, template, splice, chain(begin, chunks))
    else:
        _read_ranges(work, template, splice)
    return splice.finish()


def _read_ranges(work: Work, template: Run, splice: _Splice) -> None:
    """Read the ranges of a file, and make sure that each begins where the one before it ends."""
    size = template.path.stat().st_size
    form = _FORMS.get(template.path.suffix, "plain")
    unit, expected = (8, FIRST_BLOCK) if form == "bzip2" else (1, 0)
    if size == 0:
        raise damaged(str(template.path), 0, 0, 0, "the file is empty")
    runs = [
        replace(template, form=form, begin=unit * begin, end=unit * end, exact=begin == 0 and form != "bzip2",
                folder=template.folder / f"run-{number:06d}")
        for number, (begin, end) in enumerate(ranges_of(size))
    ]  # fmt: skip
    for run, report in zip(runs, work.engine.map(read_run, runs), strict=True):
        folder = run.folder
        in_place = report.damage is None and report.start == expected
        if not in_place and expected < run.end:
            folder = folder.with_suffix(".again")
            again = replace(run, begin=expected, exact=True, folder=folder, first_member=splice.report.members)
            report, in_place = read_run(again), True
        if in_place:  # else what looked like a beginning lies inside what the runs before have read
            splice.add(report, folder)
            expected = report.stop
        work.progress.advance((run.end - run.begin) // unit)
        work.progress.tell(str(splice.report))
    if expected != unit * size:
        end = replace(runs[-1], begin=expected, end=unit * size, exact=True, folder=template.folder / "end")
        splice.add(read_run(end), end.folder)


def ranges_of(size: int) -> Iterator[tuple[int, int]]:
    """Cut a file into ranges of bytes."""
    step = max(_SMALLEST_RANGE, min(_LARGEST_RANGE, size // _RANGES_PER_FILE))
    return ((begin, min(begin + step, size)) for begin in range(0, size, step))


def _read_stream(work: Work, template: Run, splice: _Splice, chunks: Iterable[Chunk]) -> None:
    """Read a file from its beginning, and let all workers decode what comes."""
    number = 0
    for group in _read_ahead(_grouped(chunks, at_once=4 * work.engine.workers)):
        runs = [
            replace(template, chunks=given, folder=template.folder / f"run-{number:06d}")
            for number, given in enumerate(group, number)
        ]
        number += len(runs)
        for run, report in zip(runs, work.engine.map(read_run, runs), strict=True):
            splice.add(report, run.folder, numbered=True)
            work.progress.advance(sum(len(chunk.content) for chunk in run.chunks))
            work.progress.tell(str(splice.report))
    if not number:
        raise IntegrityError("the dump is empty", where=str(template.path))


_Group = list[tuple[Chunk, ...]]


def _read_ahead(groups: Iterator[_Group]) -> Iterator[_Group]:
    """Yield groups while a thread reads the next one; what it raises is raised here, after what it had read before."""
    waiting: queue.Queue[_Group | BaseException | None] = queue.Queue(maxsize=1)
    stopped = threading.Event()

    def read() -> None:
        try:
            for group in groups:
                waiting.put(group)
                if stopped.is_set():
                    return
        except BaseException as error:
            waiting.put(error)
        else:
            waiting.put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        while (group := waiting.get()) is not None:
            if isinstance(group, BaseException):
                raise group
            yield group
    finally:
        stopped.set()
        with suppress(queue.Empty):  # makes room for what the thread may be waiting to put
            waiting.get_nowait()


def _grouped(chunks: Iterable[Chunk], *, at_once: int) -> Iterator[_Group]:
    """Group chunks into runs, and at most `at_once` runs into lists."""
    runs: _Group = []
    run: list[Chunk] = []
    size = 0
    for chunk in chunks:
        run.append(chunk)
        size += len(chunk.content)
        if size >= _RUN_BYTES:
            runs.append(tuple(run))
            run, size = [], 0
        if len(runs) == at_once:
            yield runs
            runs = []
    if run:
        runs.append(tuple(run))
    if runs:
        yield runs


# One line of a dump by its position, read from the nearest position before it where reading can begin.

_FAR = 4_000_000_000  # plain bytes that take some five seconds to decompress: the reader is told why
_STRETCH = 8_000_000  # compressed bytes that are read at once


def read_line(dump: Path, *, member: int, offset: int, starts: pl.DataFrame | None = None) -> str:
    """Read the line that begins at an offset of a decompressed member, without its comma; of triples all of an entity.

    `starts` has the positions of this file where reading can begin (`STARTS`); without them it begins at the beginning.
    """
    lines = _lines_from(dump, member, offset, starts)
    first = next(lines, b"")
    if not first:
        raise IntegrityError("the dump has no such line", where=str(dump), found=f"member {member}, byte {offset}")
    if entity := subject_of(first):
        about = chain([first], takewhile(lambda line: subject_of(line) in {entity, None}, lines))
        return b"\n".join(line for line in about if subject_of(line)).decode("utf-8")
    return first.decode("utf-8").strip().removesuffix(",")


def _lines_from(dump: Path, member: int, offset: int, starts: pl.DataFrame | None) -> Iterator[bytes]:
    """Read the lines that begin at an offset or after it."""
    content = b""
    for chunk in _chunks_near(dump, member, offset, starts):
        if chunk.member < member or (chunk.member == member and chunk.offset + len(chunk.content) <= offset):
            continue
        content += chunk.content[max(0, offset - chunk.offset) if chunk.member == member else 0 :]
        *whole, content = content.split(b"\n")
        yield from whole
    if content:
        yield content


def _chunks_near(dump: Path, member: int, offset: int, starts: pl.DataFrame | None) -> Iterator[Chunk]:
    """Read a dump from the nearest start before a line."""
    before = (pl.col("member") < member) | ((pl.col("member") == member) & (pl.col("offset") <= offset))
    near = starts.filter(before).sort("member", "offset").tail(1) if starts is not None else pl.DataFrame()
    if near.is_empty():
        return read_chunks(dump)
    first, at, begin = near.row(0)[-3:]
    if first == member and offset - at > _FAR:
        logger.warning(
            "%s is one member: %.0f GB before the line are decompressed first; the published dumps have many",
            dump, (offset - at) / 1e9,
        )  # fmt: skip
    return (
        replace(chunk, member=chunk.member + first, offset=chunk.offset + (0 if chunk.member else at))
        for chunk in (read_chunks(dump, begin=begin) if dump.suffix == ".zst" else _ranges_from(dump, begin))
    )


def _ranges_from(dump: Path, begin: int) -> Iterator[Chunk]:
    """Read a file from a member, a block or a byte on, a stretch at a time; all is counted from there."""
    form = _FORMS.get(dump.suffix, "plain")
    unit = 8 if form == "bzip2" else 1
    end, member, carry = unit * dump.stat().st_size, 0, 0
    while begin < end:
        stretch = RANGES[form](dump, begin, min(begin + unit * _STRETCH, end))
        within = last = 0
        for chunk in stretch.chunks():
            last, offset = chunk.member, chunk.offset + (0 if chunk.member else carry)
            within = offset + len(chunk.content)
            yield replace(chunk, member=last + member, offset=offset)
        carry = within if last == stretch.members else 0
        begin, member = stretch.stop, member + stretch.members
