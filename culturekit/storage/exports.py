"""Tables for other tools: JSON lines as they are, CSV made safe for spreadsheets."""

from pathlib import Path

import polars as pl

from culturekit.records.choices import ExportFormat
from culturekit.storage.atomic import write_atomically

__all__ = ["export_table"]

FORMULA = r"^[=+\-@\t\r]"
"""How a cell begins that a spreadsheet would compute instead of show."""


def export_table(parquet: Path, form: ExportFormat) -> Path:
    """Write a table a second time beside itself; Parquet stays the one that stages read."""
    frame = pl.read_parquet(parquet)
    path = parquet.with_suffix(f".{form}")
    content = frame.write_ndjson() if form == "jsonl" else for_spreadsheets(frame).write_csv()
    write_atomically(path, content.encode("utf-8"))
    return path


def for_spreadsheets(frame: pl.DataFrame) -> pl.DataFrame:
    """Write lists as JSON text, and put an apostrophe before what a spreadsheet would take for a formula."""
    lists = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    return frame.with_columns(
        *(json_text(name) for name in lists),
        *(
            pl.when(pl.col(name).str.contains(FORMULA))
            .then(pl.concat_str(pl.lit("'"), name))
            .otherwise(name)
            .alias(name)
            for name in texts
        ),
    )


def json_text(name: str) -> pl.Expr:
    """Write a list of texts as JSON."""
    inner = pl.struct(pl.col(name).alias("x")).struct.json_encode()
    return inner.str.strip_prefix('{"x":').str.strip_suffix("}").alias(name)
