"""Dump files to the graph store: one pass over the lines, parts by file, one sorted result."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.errors import IntegrityError
from culturekit.kg.entities import Item, Malformed, decode
from culturekit.kg.lines import Line, entity_lines
from culturekit.kg.members import read_chunks
from culturekit.kg.store import build_store
from culturekit.records.schemas import ITEMS, STATEMENTS
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import merge_parts, save_parquet

__all__ = ["IngestOptions", "ingest"]

ITEMS_PER_PART = 50_000
SAMPLES = 3
"""How many malformed lines are quoted."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How a dump is read."""

    languages: tuple[str, ...] = ("en",)
    max_malformed: Annotated[float, Field(ge=0, le=1)] = 0.001


@dataclass(frozen=True, slots=True)
class DumpFile:
    """One file of a dump, as a work item."""

    index: int
    path: Path
    scratch: Path
    options: IngestOptions

    @property
    def folder(self) -> Path:
        """Where the parts of this file go."""
        return self.scratch / f"file-{self.index:05d}"


@dataclass(frozen=True, slots=True)
class FileReport:
    """What a file held."""

    lines: int
    kinds: dict[str, int]
    malformed: dict[str, int]
    samples: tuple[str, ...]
    parts: int


def ingest(work: Work, dump: Sequence[Path], options: IngestOptions) -> Outcome:
    """Read dump files into a graph store at `work.out`."""
    files = [DumpFile(index, path, work.scratch, options) for index, path in enumerate(dump)]
    work.progress.begin(len(files), "dump files")
    reports = []
    for report in work.engine.map(read_file, files):
        reports.append(report)
        work.progress.advance(1)
    check_malformed(reports, options.max_malformed, name=", ".join(path.name for path in dump))
    items, duplicates = unique_items(gather(files, reports, "items"))
    statements = gather(files, reports, "statements")
    kept = statements.join(items.select("number", "file", "line"), on=["number", "file", "line"], how="semi")
    counts = build_store(work.out, items, kept.drop("file", "line"))
    kinds = sum((Counter(report.kinds) for report in reports), Counter[str]())
    drops = {f"not an item: {kind}": count for kind, count in kinds.items() if kind != "item"}
    drops |= {f"malformed: {reason}": count for reason, count in all_malformed(reports).items()}
    if duplicates:
        drops["item given twice"] = duplicates
    return Outcome({"lines": sum(report.lines for report in reports), **counts}, drops)


def read_file(file: DumpFile) -> FileReport:
    """Decode one file into numbered parts; nothing is left of an earlier, cut attempt."""
    file.folder.mkdir(exist_ok=True)
    kinds: Counter[str] = Counter()
    malformed: Counter[str] = Counter()
    samples: list[str] = []
    lines = parts = 0
    batch: list[tuple[Line, Item]] = []
    for line in entity_lines(read_chunks(file.path), name=str(file.path)):
        lines += 1
        try:
            item = decode(line.content, languages=file.options.languages)
        except Malformed as error:
            malformed[error.reason] += 1
            if len(samples) < SAMPLES:
                samples.append(f"{file.path}, line {line.number} (member {line.member}, byte {line.offset}): {error}")
            continue
        kinds[item if isinstance(item, str) else "item"] += 1
        if isinstance(item, Item):
            batch.append((line, item))
        if len(batch) == ITEMS_PER_PART:
            parts += write_part(file, parts, batch)
    parts += write_part(file, parts, batch)
    return FileReport(lines, dict(kinds), dict(malformed), tuple(samples), parts)


def write_part(file: DumpFile, part: int, batch: list[tuple[Line, Item]]) -> int:
    """Write a batch as two part tables and empty it."""
    save_parquet(
        pl.DataFrame(item_rows(file.index, batch), schema=part_schema("items")), part_path(file, "items", part)
    )
    rows = statement_rows(file.index, batch)
    save_parquet(pl.DataFrame(rows, schema=part_schema("statements")), part_path(file, "statements", part))
    batch.clear()
    return 1


def part_path(file: DumpFile, table: str, part: int) -> Path:
    """Name a part."""
    return file.folder / f"{table}-{part:05d}.parquet"


def part_schema(table: str) -> dict[str, pl.DataType]:
    """Give the columns of a part: those of the table, and for statements also the line they come from."""
    return ITEMS.schema if table == "items" else {**STATEMENTS.schema, "file": pl.UInt16(), "line": pl.UInt64()}


def item_rows(file: int, batch: Sequence[tuple[Line, Item]]) -> dict[str, list[object]]:
    """Turn items into columns."""
    rows: dict[str, list[object]] = {name: [] for name in ITEMS.columns}
    for line, item in batch:
        values: tuple[object, ...] = (
            f"Q{item.number}", item.number, item.label, item.label_language, item.description, item.aliases,
            item.sitelinks, item.title, item.image, item.latitude, item.longitude,
            file, line.member, line.number, line.offset,
        )  # fmt: skip
        for name, value in zip(ITEMS.columns, values, strict=True):
            rows[name].append(value)
    return rows


def statement_rows(file: int, batch: Sequence[tuple[Line, Item]]) -> dict[str, list[object]]:
    """Turn statements into columns."""
    rows: dict[str, list[object]] = {name: [] for name in part_schema("statements")}
    for line, item in batch:
        for statement in item.statements:
            values: tuple[object, ...] = (
                item.number, statement.property, statement.position, statement.value or None,
                statement.snak, statement.rank, statement.qualified, statement.ended, file, line.number,
            )  # fmt: skip
            for name, value in zip(rows, values, strict=True):
                rows[name].append(value)
    return rows


def gather(files: Sequence[DumpFile], reports: Sequence[FileReport], table: str) -> pl.DataFrame:
    """Join the parts of all files, in file order."""
    paths = [
        part_path(file, table, n) for file, report in zip(files, reports, strict=True) for n in range(report.parts)
    ]
    return merge_parts(paths, part_schema(table))


def unique_items(items: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Keep the first line of each item; give the items in the order of their numbers, and how many were extra."""
    ordered = items.sort("number", "file", "line")
    unique = ordered.unique("number", keep="first", maintain_order=True)
    return unique, ordered.height - unique.height


def all_malformed(reports: Sequence[FileReport]) -> Counter[str]:
    """Add up the malformed lines by reason."""
    return sum((Counter(report.malformed) for report in reports), Counter[str]())


def check_malformed(reports: Sequence[FileReport], share: float, *, name: str) -> None:
    """Stop when more lines are malformed than a dump can have by accident."""
    lines = sum(report.lines for report in reports)
    malformed = sum(all_malformed(reports).values())
    if lines == 0:
        raise IntegrityError("the dump holds no entity", where=name)
    if malformed > share * lines:
        samples: Iterator[str] = (sample for report in reports for sample in report.samples)
        raise IntegrityError(
            f"{malformed:,} of {lines:,} lines are not entities",
            where=name,
            expected=f"at most {share:.2%}",
            found="; ".join(sample for _, sample in zip(range(SAMPLES), samples, strict=False)),
            hint="Nothing was published. If the dump is sound, allow more with --max-malformed.",
        )
