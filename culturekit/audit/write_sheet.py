"""Writing a mended copy in the layout it came in, and the log of what was changed."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import polars as pl

from culturekit.audit.mend import LogLine
from culturekit.audit.sheet import Sheet
from culturekit.errors import UsageError
from culturekit.storage.atomic import write_atomically
from culturekit.storage.spreadsheet_cells import frame_as_csv
from culturekit.storage.tables import save_parquet

__all__ = ["change_log_path", "write_log", "write_sheet"]

LOG_COLUMNS = ("row", "action", "code", "field", "before", "after", "message")


def change_log_path(out: Path) -> Path:
    """Name the change log beside a mended copy."""
    return out.with_name(f"{out.name}.changes.csv")


def write_sheet(sheet: Sheet, source: Path, out: Path) -> None:
    """Write a copy; it must have the suffix of its source, and never replaces it."""
    if out.suffix.lower() != source.suffix.lower():
        raise UsageError("a mended copy keeps its layout", expected=f"--fix NAME{source.suffix}", found=out.name)
    if out.exists() and out.samefile(source):
        raise UsageError("a mended copy is another file", where=str(out), hint="Name another file after --fix.")
    rows = [dict(row.cells) for row in sheet.rows]
    out.parent.mkdir(parents=True, exist_ok=True)
    if sheet.form == "json":
        write_atomically(out, (json.dumps(rows, ensure_ascii=False, indent=1) + "\n").encode())
    elif sheet.form == "csv":
        frame = pl.DataFrame(rows, schema=dict.fromkeys(sheet.columns, pl.String))
        write_atomically(out, frame_as_csv(frame).encode())
    else:
        schema = pl.read_parquet_schema(source)
        save_parquet(pl.DataFrame(rows, schema=schema).sort(sheet.layout.key, maintain_order=True), out)


def write_log(log: Sequence[LogLine], path: Path) -> None:
    """Write what was changed, one line a cell or row, safe for spreadsheets."""
    columns = {name: pl.Int64 if name == "row" else pl.String for name in LOG_COLUMNS}
    frame = pl.DataFrame([asdict(line) for line in log], schema=columns)
    write_atomically(path, frame_as_csv(frame).encode())
