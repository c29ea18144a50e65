"""Tables of items that the user, or a stage, wrote."""

from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.storage.spreadsheet_cells import read_csv_texts
from culturekit.storage.system_errors import raise_system_error

__all__ = ["read_rows"]


def read_rows(path: Path) -> pl.DataFrame:
    """Read a table of items that the user, or a stage, wrote; every cell of a CSV file is text."""
    if not path.is_file():
        raise UsageError("there is no such table of items", where=str(path))
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
        return read_csv_texts(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise_system_error(error, path)
        raise UsageError("not a readable table of items", where=str(path), found=str(error)) from error
