"""Tables for other tools: JSON lines as they are, CSV made safe for spreadsheets."""

from pathlib import Path

import polars as pl

from culturekit.records.choices import ExportFormat
from culturekit.storage.atomic import write_atomically
from culturekit.storage.spreadsheet_cells import frame_as_csv

__all__ = ["export_table"]


def export_table(parquet: Path, form: ExportFormat) -> Path:
    """Write a table a second time beside itself; Parquet stays the one that stages read."""
    frame = pl.read_parquet(parquet)
    path = parquet.with_suffix(f".{form}")
    content = frame.write_ndjson() if form == "jsonl" else frame_as_csv(frame)
    write_atomically(path, content.encode("utf-8"))
    return path
