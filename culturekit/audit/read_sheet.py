"""Reading a file that is to be audited: the public layout, our tables, or CSV of either."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import polars as pl

from culturekit.audit.layouts import LAYOUTS, Layout, layout_of
from culturekit.audit.sheet import Form, Row, Sheet
from culturekit.errors import UsageError
from culturekit.kg.countries import countries
from culturekit.storage.spreadsheet_cells import read_csv_texts
from culturekit.storage.system_errors import raise_system_error

__all__ = ["read_sheet"]

FORMS: Mapping[str, Form] = {".json": "json", ".parquet": "parquet", ".csv": "csv"}
BOM = b"\xef\xbb\xbf"
Cells: TypeAlias = dict[str, str | None]


def read_sheet(path: Path) -> Sheet:
    """Read a file by its suffix; what it is follows from its columns."""
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise UsageError("which layout is this?", where=str(path), expected=" or ".join(FORMS), found=path.suffix)
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path))
    columns, rows = {"json": read_json, "parquet": read_parquet, "csv": read_csv}[form](path)
    layout = layout_of(columns)
    if layout is None:
        raise no_layout(path, columns)
    places = {getattr(country, layout.countries): country for country in countries().values()}
    return Sheet(layout, form, tuple(columns), tuple(Row(*each) for each in enumerate(rows)), places)


def no_layout(path: Path, columns: Sequence[str]) -> UsageError:
    """Say which columns lack, by the layout that comes nearest."""
    nearest: Layout = min(LAYOUTS, key=lambda layout: len(set(layout.needs) - set(columns)))
    lacking = [column for column in nearest.needs if column not in columns]
    return UsageError(
        "the columns are those of no layout",
        where=str(path),
        expected=f"the {nearest.name} layout, with {', '.join(nearest.needs)}",
        found=f"no {', '.join(lacking)}",
    )


def read_json(path: Path) -> tuple[list[str], Sequence[Cells]]:
    """Read an array of rows of texts; the columns are those of all rows, in the order of their first mention."""
    try:
        rows = msgspec.json.decode(path.read_bytes().removeprefix(BOM), type=list[Cells])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"not in the public CUBE layout: {error}", where=str(path), expected="an array of rows of texts"
        ) from error
    columns = names_of(rows) or list(LAYOUTS[0].needs)
    return columns, rows


def names_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """List the keys of rows, each once."""
    return list(dict.fromkeys(key for row in rows for key in row))


def read_parquet(path: Path) -> tuple[list[str], Sequence[dict[str, Any]]]:
    """Read a table as it is: what a stage would refuse, such as a repeated key, is a finding here."""
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise_system_error(error, path)
        raise UsageError("not a readable Parquet file", where=str(path), found=str(error)) from error
    layout = layout_of(frame.columns)
    strange = [name for name in (layout.needs if layout else ()) if frame.schema[name] != pl.String]
    if strange:
        raise UsageError(
            "a column of another type than its table has",
            where=str(path),
            expected=f"text in {', '.join(strange)}",
            found=", ".join(str(frame.schema[name]) for name in strange),
        )
    return frame.columns, frame.to_dicts()


def read_csv(path: Path) -> tuple[list[str], Sequence[Cells]]:
    """Read CSV as text."""
    try:
        frame = read_csv_texts(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise_system_error(error, path)
        found = str(error).partition("\n")[0]
        raise UsageError("not a readable CSV file", where=str(path), expected="UTF-8, a header", found=found) from error
    return frame.columns, frame.to_dicts()
