"""Tables larger than memory should hold: read in key order, some rows at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from culturekit.errors import IntegrityError
from culturekit.records.tables import Table
from culturekit.storage.tables import no_such_table, read_table, save_parquet, unreadable

__all__ = ["ROWS_PER_SLICE", "TableSlices", "slices_of"]

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
        own = Table(self.table.name, key, {name: declared[name] for name in names}, {})
        scan = pl.scan_parquet(self.path).select(names)
        for start in range(0, self.rows, ROWS_PER_SLICE):
            try:
                frame = scan.slice(start, ROWS_PER_SLICE).collect()
            except (pl.exceptions.PolarsError, OSError) as error:
                raise unreadable(self.path, self.table, error) from error
            refuse(self.path, own.name, own.problems(frame))
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


def slices_of(path: Path, table: Table, *, scratch: Path) -> TableSlices:
    """Open a table for reading by slices; one whose rows stand in another order is sorted into `scratch` first."""
    if not path.is_file():
        raise no_such_table(path, table)
    try:
        scan = pl.scan_parquet(path)
        schema = scan.collect_schema()
        rows = int(scan.select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise unreadable(path, table, error) from error
    known = {name: dtype for name, dtype in schema.items() if name in table.columns or name in table.optional}
    refuse(path, table.name, table.problems(pl.DataFrame(schema=known)))
    own = replace(table, optional={name: column for name, column in table.optional.items() if name in known})
    opened = TableSlices(path, own, rows)
    return opened if opened.in_order() else replace(opened, path=sorted_copy(path, table, scratch))


def sorted_copy(path: Path, table: Table, scratch: Path) -> Path:
    """Write a table again in key order."""
    ordered = scratch / f"{table.name}.parquet"
    if not ordered.is_file():
        save_parquet(read_table(path, table).sort(table.key, nulls_last=False, maintain_order=True), ordered)
    return ordered


def refuse(path: Path, name: str, problems: Sequence[str]) -> None:
    """Refuse a table that departs from its declaration."""
    if problems:
        raise IntegrityError(f"not a {name} table: {'; '.join(problems)}", where=str(path))
