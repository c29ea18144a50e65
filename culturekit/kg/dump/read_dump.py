"""A dump file to part tables: cut into runs, read by all workers, spliced together again."""

import queue
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from culturekit.errors import IntegrityError, UsageError
from culturekit.kg.dump.bzip2_ranges import FIRST_BLOCK
from culturekit.kg.dump.dump_runs import Form, Run, RunReport, Syntax, read_run
from culturekit.kg.dump.gzip_ranges import second_member
from culturekit.kg.dump.members import STDIN, Chunk, damaged, read_chunks
from culturekit.kg.dump.splice import FileReport, Splice
from culturekit.kg.dump.triples import looks_like_triples
from culturekit.records.work import Work

__all__ = ["FORMS", "read_dump"]

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
