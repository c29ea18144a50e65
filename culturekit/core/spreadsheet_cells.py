"""The one place that writes CSV and JSON lines: what a spreadsheet would compute gets an apostrophe."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from culturekit.core.atomic import write_atomically
from culturekit.core.choices import ExportFormat


def export_table(parquet: Path, form: ExportFormat) -> Path:
    """Write a table a second time beside itself; Parquet stays the one that stages read."""
    frame = pl.read_parquet(parquet)
    path = parquet.with_suffix(f".{form}")
    content = frame.write_ndjson() if form == "jsonl" else frame_as_csv(frame)
    write_atomically(path, content.encode("utf-8"))
    return path


BLANK = r"[\s\x00-\x1f\u200b-\u200f\u2028-\u202e\u2060\ufeff]"
"""What spreadsheets trim from the front of a cell, or show as nothing."""

COMPUTED = rf"'*(?:{BLANK}*[=+\-@＝＋－＠]|[\t\r\n])"
"""How a cell begins that a spreadsheet would compute; with apostrophes before it, so that reading gives them back."""

GUARDED = re.compile(COMPUTED)


def guarded(cell: str) -> str:
    """Put an apostrophe before what a spreadsheet would take for a formula."""
    return f"'{cell}" if GUARDED.match(cell) else cell


def unguarded(cell: str) -> str:
    """Take away the apostrophe that kept a spreadsheet from computing a cell."""
    return cell[1:] if cell.startswith("'") and GUARDED.match(cell, 1) else cell


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, object]], *, line_end: str = "\n") -> str:
    """Write rows as CSV; a column that a row lacks is an empty cell, and only texts are guarded."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator=line_end)
    writer.writerow([guarded(name) for name in columns])
    for row in rows:
        cells = (row.get(name, "") for name in columns)
        writer.writerow([guarded(cell) if isinstance(cell, str) else cell for cell in cells])
    return file.getvalue()


def frame_as_csv(frame: pl.DataFrame) -> str:
    """Write a table as CSV; lists and structs are JSON text."""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String or kind in (pl.Categorical, pl.Enum)]
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    written = frame.with_columns(*(json_text(name) for name in nested), *(guarded_text(name) for name in texts))
    return written.rename({name: guarded(name) for name in frame.columns}).write_csv()


def guarded_text(name: str) -> pl.Expr:
    """Guard a column of texts."""
    text = pl.col(name).cast(pl.String)
    return pl.when(text.str.contains(f"^(?:{COMPUTED})")).then("'" + text).otherwise(text).alias(name)


def json_text(name: str) -> pl.Expr:
    """Write a list or a struct as JSON."""
    inner = pl.struct(pl.col(name).alias("x")).struct.json_encode()
    return inner.str.strip_prefix('{"x":').str.strip_suffix("}").alias(name)


def read_csv_texts(path: Path) -> pl.DataFrame:
    """Read a CSV file with every cell as the text that it was before it was guarded."""
    frame = pl.read_csv(path, infer_schema=False)
    frame = frame.rename({name: unguarded(name) for name in frame.columns})
    return frame.with_columns(pl.all().str.replace(f"^'({COMPUTED})", "$1"))
