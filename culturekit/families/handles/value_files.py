"""Reading the values that scoring stages left behind, from several files as one table."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.records.schemas import VALUES
from culturekit.storage.tables import read_table

__all__ = ["numbered", "read_values", "roles"]


def roles(role: str, paths: Sequence[Path]) -> dict[str, Path]:
    """Name the files of one kind, in the order given: `values-0`, `values-1`."""
    return {f"{role}-{number}": path for number, path in enumerate(paths)}


def numbered(role: str, paths: Sequence[Path]) -> dict[str, Path]:
    """Name the files of one kind; a single one has no number."""
    return {role: paths[0]} if len(paths) == 1 else roles(role, paths)


def read_values(paths: Sequence[Path]) -> pl.DataFrame:
    """Read tables of values as one; the same value in two files is a mistake."""
    table = pl.concat([read_table(path, VALUES).select(list(VALUES.schema)) for path in paths])
    repeated = table.filter(table.select(VALUES.key).is_duplicated())
    if repeated.height:
        row = repeated.sort(VALUES.key).row(0, named=True)
        raise UsageError(
            "two tables hold the same value",
            where=", ".join(map(str, paths)),
            found=f"{row['metric']} of {row['model']}, item {row['item']!r}",
            hint="Give each table once, and one table per model where models were scored apart.",
        )
    return table
