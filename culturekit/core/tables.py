"""Reading and writing tables: the only place where Parquet is made, and each table is checked there."""

import importlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from os import SEEK_END
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from culturekit.core.atomic import decoding, system_errors, whole_file
from culturekit.core.errors import CultureKitError, IntegrityError, UsageError
from culturekit.core.schemas import CSPACE, DROPS, PROMPTS, TABLES
from culturekit.core.spreadsheet_cells import read_sheet_as
from culturekit.core.stage import Outcome, Work
from culturekit.core.table import PERSONS, Fault, Table, faults_in

ROWS_PER_GROUP = 131_072

# Columns of sentences and of days, which may look as a spreadsheet's dates do.
FREE_TEXTS = frozenset({"text", "detail", "raw", "comment", "prompt_sent", "params", "decided_on", "reviewed_on"})


def write_table(folder: Path, table: Table, frame: pl.DataFrame) -> Path:
    """Write `FOLDER/NAME.parquet`, rows in key order: equal rows give equal bytes, however they came."""
    ordered = frame.sort(table.key, nulls_last=False, maintain_order=True)
    _check_conforms(folder, table, ordered)
    path = folder / f"{table.name}.parquet"
    save_parquet(ordered, path)
    return path


def _check_conforms(folder: Path, table: Table, frame: pl.DataFrame) -> None:
    """Refuse to write a table that departs from its declaration."""
    if problems := table.problems(frame):
        raise CultureKitError(f"table {table.name} does not conform: {'; '.join(problems)}", where=str(folder))


def table_outcome(
    work: Work,
    table: Table,
    frame: pl.DataFrame,
    drops: Mapping[str, int] | None = None,
    *,
    notes: Mapping[str, object] | None = None,
) -> Outcome:
    """Write the table that is all a stage makes, and count its rows."""
    write_table(work.out, table, frame)
    return Outcome({table.name: frame.height}, drops or {}, notes or {})


def write_drops(
    folder: Path,
    rows: "Gathered | pl.DataFrame | Sequence[Mapping[str, object] | tuple[str | None, ...]]",
    *,
    once: bool = False,
) -> dict[str, int]:
    """Write what a stage left out, and count it by reason; `once`: of rows that repeat the key, only the first."""
    if isinstance(rows, Gathered):
        reasons = pl.scan_parquet(rows.write(folder)).group_by("reason").len().sort("reason")
        return dict(reasons.collect(engine="streaming").iter_rows())
    drops = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows, schema=DROPS.schema, orient="row")
    if once:
        drops = drops.unique(DROPS.key, keep="first", maintain_order=True)
    write_table(folder, DROPS, drops.select(list(DROPS.schema)))
    return dict(drops["reason"].value_counts().sort("reason").iter_rows())


def save_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Write Parquet durably and in one piece."""
    with whole_file(path) as file:
        frame.write_parquet(file, compression="zstd", statistics=True, row_group_size=ROWS_PER_GROUP)


def write_frames(
    folder: Path, table: Table, frames: Iterable[pl.DataFrame], *, rows_per_group: int = ROWS_PER_GROUP,
    without: Collection[str] = (),
) -> Path:  # fmt: skip
    """Write `FOLDER/NAME.parquet` from frames that follow one another in key order, in bounded memory.

    Equal rows give equal bytes, however they were framed. Wide rows want smaller groups: some are held in memory.
    Frames have all optional columns but those that they are `without`.
    """
    raised: list[BaseException] = []

    def checked(*_: object) -> Iterator[pl.DataFrame]:
        try:
            for frame in in_groups(frames, rows_per_group):
                _check_conforms(folder, table, frame)
                yield frame
        except BaseException as error:  # polars would make a type of its own of it
            raised.append(error)
            raise

    columns = {**table.columns, **table.optional}
    known = {name: column.dtype for name, column in columns.items() if name not in without}
    path = folder / f"{table.name}.parquet"
    with whole_file(path) as file:
        try:
            register_io_source(checked, schema=known).sink_parquet(
                file, compression="zstd", statistics=True, row_group_size=rows_per_group
            )
        except BaseException:
            if raised and not isinstance(raised[0], GeneratorExit):
                raise raised[0] from None
            raise
    return path


class Gathered:
    """Rows of a table that come in blocks, and wait on disk; blocks in order of the key never meet in memory."""

    def __init__(self, table: Table, scratch: Path, *, once: bool = False) -> None:
        """Begin without any; `once`: of rows that repeat the key, only the first is kept."""
        self.table, self.scratch, self.once = replace(table, optional={}), scratch, once
        self.parts, self.rows, self.last, self.in_order = list[Path](), 0, list[Any](), True

    def add(self, frame: pl.DataFrame) -> None:
        """Take a block."""
        block = self._ordered(frame)
        if block.is_empty():
            return
        keys = block[self.table.key[0]]
        self.in_order = self.in_order and (not self.last or self.last[0] < keys[0])
        self.last, self.rows = [keys[-1]], self.rows + block.height
        self.parts.append(self.scratch / f"{self.table.name}-{len(self.parts):06d}.arrow")
        save_part(block, self.parts[-1])

    def write(self, folder: Path) -> Path:
        """Write all of them as a table."""
        if self.in_order and self.parts:
            return write_frames(folder, self.table, map(read_part, self.parts))
        whole = pl.concat([pl.DataFrame(schema=self.table.schema), *map(read_part, self.parts)])
        return write_table(folder, self.table, self._ordered(whole))

    def _ordered(self, frame: pl.DataFrame) -> pl.DataFrame:
        rows = frame.unique(self.table.key, keep="first", maintain_order=True) if self.once else frame
        return rows.select(list(self.table.schema)).sort(self.table.key, nulls_last=False, maintain_order=True)


def in_groups(frames: Iterable[pl.DataFrame], size: int) -> Iterator[pl.DataFrame]:
    """Divide rows into frames, as many in each frame as a row group has."""
    waiting: list[pl.DataFrame] = []
    rows = 0
    for frame in frames:
        waiting.append(frame)
        rows += frame.height
        if rows >= size:
            whole = pl.concat(waiting)
            full = rows - rows % size
            for start in range(0, full, size):
                yield whole.slice(start, size).rechunk()
            waiting, rows = [whole.slice(full)], rows - full
    if rows:
        yield pl.concat(waiting).rechunk()


def save_part(frame: pl.DataFrame, path: Path) -> None:
    """Write a part that is gathered later, quickly: whoever lets a later run trust it seals it.

    A part of a few thousand rows is written as an Arrow stream in half the time of Parquet.
    """
    with system_errors(path):
        frame.write_ipc_stream(path, compression="lz4")


def read_part(path: Path) -> pl.DataFrame:
    """Read a part."""
    with damaged_part(path):
        return pl.read_ipc_stream(path)


def damaged_part(path: Path) -> AbstractContextManager[None]:
    """Say that a part was damaged after it was written, and that this can be mended."""
    hint = "Check the disk, then run the same command again: a damaged part is made again."
    return decoding(path, "a part that this run wrote is damaged", hint=hint, error=IntegrityError)


def read_table(path: Path | str, table: Table | str) -> pl.DataFrame:
    """Read a table, or a CSV file of one, and check it against its declaration; extra columns are left out.

    Example:
        >>> space = ck.read_table("runs/cube/cspace/cspace.parquet", "cspace")
        >>> set(ck.TABLES["cspace"].key) <= set(space.columns)
        True
    """
    path = Path(path)
    if isinstance(table, str):
        if table not in TABLES:
            raise UsageError(f"there is no table {table!r}", expected=" or ".join(sorted(TABLES)))
        table = TABLES[table]
    if not path.is_file():
        raise no_such_table(path, table)
    columns = {**table.columns, **table.optional}
    lines: list[int] = []
    if path.suffix.lower() in {".csv", ".tsv"}:
        frame, lines = read_sheet_as(path, columns, FREE_TEXTS)
    else:
        with reading(path, table):
            frame = pl.read_parquet(path)
    known = [name for name in frame.columns if name in columns]
    frame = frame.select(known)
    refuse(path, table.name, table.problems(frame))
    check_rows(frame, table, str(path), lines=lines)
    return frame


def check_rows(frame: pl.DataFrame, table: Table, where: str, *, lines: Sequence[int] = ()) -> None:
    """Refuse a table with rows that cannot be true, such as two spellings of one name, or an image of two regions.

    Args:
        frame: conforms to the table.
        table: says what its rows promise.
        where: the frame comes from.
        lines: where its rows stand in the file, if that is a text.
    """

    def position_of(fault: Fault) -> str:
        row = fault.rows[0]
        return f"line {lines[row - 1]:,}" if lines else f"row {row:,}"

    faults = list(faults_in(frame, table))
    for first in faults[:1]:
        more = f" and {len(first.rows) - 1:,} more" if len(first.rows) > 1 else ""
        others = "".join(f" Besides, {one.problem} ({position_of(one)}: {one.found})." for one in faults[1:8])
        raise UsageError(
            first.problem, where=f"{where}, {position_of(first)}{more}", expected=first.expected, found=first.found,
            hint=first.hint + others,
        )  # fmt: skip


def read_together(
    paths: Sequence[Path], table: Table, *, read: Callable[[Path], pl.DataFrame] | None = None
) -> pl.DataFrame:
    """Read tables of one kind as one; columns that only some have are left out. A row in two is a mistake.

    `read` may look at each more closely than `read_table` does.
    """
    each = [read_table(path, table) if read is None else read(path) for path in paths]
    whole = pl.concat([one.select(list(table.schema)) for one in each])
    if len(paths) == 1:
        return whole
    check_rows(whole, table, ", ".join(map(str, paths)))
    twice = table.repeated(whole)
    if twice.height:
        row = twice.row(0, named=True)
        raise UsageError(
            f"two tables of {table.name} have the same rows", where=", ".join(map(str, paths)),
            found=", ".join(f"{name} {row[name]!r}" for name in table.key), hint="Give each table once.",
        )  # fmt: skip
    return whole


@contextmanager
def reading(path: Path, table: Table) -> Iterator[None]:
    """Say that a file is not Parquet, or no longer whole, and what it looks like."""
    hint = "Give the file that the stage wrote, or run that stage again."
    kind = {"expected": f"the table {table.name}", "hint": hint}
    try:
        with decoding(path, "not a readable Parquet file", error=IntegrityError, **kind):
            yield
    except IntegrityError as error:
        error.found = looks_like(path) or error.found
        raise


MAGIC = {b"PAR1": "a Parquet file without its end: it was cut", b"\x1f\x8b": "a gzip file, not unpacked"}


def looks_like(path: Path) -> str:
    """Say what a file seems to be by its first bytes; nothing where they do not tell."""
    with path.open("rb") as file:
        first = file.read(80)
        file.seek(-min(4, len(first)), SEEK_END)
        last = file.read()
    if first[:4] == last == b"PAR1":
        return ""
    if not first:
        return "an empty file"
    kind = next((what for magic, what in MAGIC.items() if first.startswith(magic)), "")
    if kind or b"\0" in first:
        return kind
    return f"a text that begins {first.decode(errors='replace').splitlines()[0][:40]!r}"


def no_such_table(path: Path, table: Table) -> UsageError:
    """Say that there is no such file; for a folder, name the table in it."""
    inside = path / f"{table.name}.parquet"
    hint = f"Name the file in it: {inside}" if inside.is_file() else "Run the stage that writes it first."
    what = "a folder, not a table" if path.is_dir() else f"there is no {table.name} table"
    return UsageError(what, where=str(path), expected=f"the table {table.name}", hint=hint)


def merge_parts(paths: Sequence[Path], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Join part files in the order given; no part gives an empty table."""
    parts = []
    for path in paths:
        with damaged_part(path):
            parts.append(pl.read_parquet(path))
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema)


# Tables larger than memory should hold: read in key order, some rows at a time.

ROWS_PER_SLICE = 16_384


@dataclass(frozen=True, slots=True)
class TableSlices:
    """A table file whose rows stand in key order; `table` declares the columns that it really has."""

    path: Path
    table: Table
    rows: int

    def slices(self, columns: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
        """Read the rows in order, all columns or those named; each row is held to the declaration."""
        declared = {**self.table.columns, **self.table.optional}
        names = list(columns or declared)
        key = self.table.key if set(self.table.key) <= set(names) else ()
        partial = Table(self.table.name, key, {name: declared[name] for name in names}, {})
        scan = pl.scan_parquet(self.path).select(names)
        for start in range(0, self.rows, ROWS_PER_SLICE):
            with reading(self.path, self.table):
                frame = scan.slice(start, ROWS_PER_SLICE).collect()
            refuse(self.path, partial.name, partial.problems(frame))
            yield frame

    def in_order(self) -> bool:
        """Tell whether every key comes after the one before."""
        last: tuple[object, ...] | None = None
        for frame in self.slices(self.table.key):
            first = frame.row(0)
            if (last is not None and not last < first) or not frame.sort(self.table.key).equals(frame):
                return False
            last = frame.row(-1)
        return True


def scan_table(path: Path, table: Table) -> pl.LazyFrame:
    """Open Parquet without reading it, or read CSV; only the columns are held to the declaration."""
    if not path.is_file():
        raise no_such_table(path, table)
    if path.suffix.lower() in {".csv", ".tsv"}:
        return read_table(path, table).lazy()
    with reading(path, table):
        schema = pl.scan_parquet(path).collect_schema()
    known = {name: dtype for name, dtype in schema.items() if name in table.columns or name in table.optional}
    refuse(path, table.name, table.problems(pl.DataFrame(schema=known)))
    return pl.scan_parquet(path).select(list(known))


def blocks_of(path: Path, table: Table, *, rows: int, scratch: Path) -> Iterator[pl.DataFrame]:
    """Read a table in order of its key: Parquet of more rows by slices, anything else at once."""
    large = path.suffix == ".parquet" and path.is_file()
    if large and scan_table(path, table).select(pl.len()).collect().item() > rows:
        yield from in_groups(slices_of(path, table, scratch=scratch).slices(), rows)
    else:
        yield read_table(path, table).sort(table.key)


def whole_groups(frames: Iterable[pl.DataFrame], column: str) -> Iterator[pl.DataFrame]:
    """Divide rows in order of a column so that rows with the same value stay together."""
    rest: list[pl.DataFrame] = []
    for frame in frames:
        together = pl.concat([*rest, frame])
        last = together[column] == together[column][-1]
        rest = [together.filter(last)]
        if not last.all():
            yield together.filter(~last)
    yield from rest


def slices_of(path: Path, table: Table, *, scratch: Path) -> TableSlices:
    """Open a table for reading by slices; one whose rows stand in another order is sorted into `scratch` first."""
    scan = scan_table(path, table)
    known = scan.collect_schema()
    known_columns = replace(table, optional={name: column for name, column in table.optional.items() if name in known})
    opened = TableSlices(path, known_columns, int(scan.select(pl.len()).collect().item()))
    if opened.in_order():
        return opened
    ordered = scratch / f"{table.name}.parquet"
    if not ordered.is_file():
        save_parquet(read_table(path, table).sort(table.key, nulls_last=False, maintain_order=True), ordered)
    return replace(opened, path=ordered)


def refuse(path: Path, name: str, problems: Sequence[str]) -> None:
    """Refuse a table that departs from its declaration."""
    if problems:
        raise IntegrityError(f"not a {name} table: {'; '.join(problems)}", where=str(path))


logger = logging.getLogger(__name__)

# Imported when a file in another layout is met; the readers know countries and templates, as nothing here does.
READERS = {
    CSPACE.name: "culturekit.builders.space.space_files:read_space",
    PROMPTS.name: "culturekit.builders.space.space_files:read_prompts",
}


def space_table(path: Path, scratch: Path) -> Path:
    """Give a cultural space as a table of ours; another file is rewritten into a stage's scratch folder."""
    return _as_table(path, CSPACE, scratch)


def prompts_table(path: Path, scratch: Path) -> Path:
    """Give prompts as a table of ours, in the same way."""
    return _as_table(path, PROMPTS, scratch)


def _as_table(path: Path, table: Table, scratch: Path) -> Path:
    if path.suffix == ".parquet":
        return path
    module, _, name = READERS[table.name].partition(":")
    rows, drops = getattr(importlib.import_module(module), name)(path)
    if drops.height:
        logger.warning(
            "%s: %d rows are left out; `culturekit prompts build` lists them with reasons", path, drops.height
        )
    return write_table(scratch, table, rows)


def checked(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Keep the declared columns of a table, or say in which ways it does not conform."""
    known = frame.select(name for name in frame.columns if name in table.columns)
    problems = table.problems(known)
    if problems:
        raise UsageError(f"not a {table.name} table: {'; '.join(problems)}")
    if PERSONS & table.columns.keys():  # what people said; other tables are looked at when they are read
        check_rows(known, table, table.name)
    return known
