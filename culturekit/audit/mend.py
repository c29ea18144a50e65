"""Mending a file by what it says itself, round by round, and writing the mended copy with a log."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import polars as pl

from culturekit.audit.all_checks import counted, inspect
from culturekit.audit.findings import Change, Finding, Turn
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Row, Sheet
from culturekit.errors import UsageError
from culturekit.storage.atomic import write_atomically
from culturekit.storage.spreadsheet_cells import frame_as_csv
from culturekit.storage.tables import save_parquet

__all__ = ["Mended", "change_log_path", "mend", "write_log", "write_sheet"]

MOST_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class LogLine:
    """One thing that was changed; `field` is empty where a row was set aside, and `before` then holds it whole."""

    row: int
    action: str
    code: str
    field: str
    before: str
    after: str
    message: str


@dataclass(frozen=True, slots=True)
class Mended:
    """A mended file, what was changed, and what is left: notes."""

    sheet: Sheet
    log: tuple[LogLine, ...]
    left: tuple[Finding, ...]


def mend(sheet: Sheet, knowledge: Knowledge) -> Mended:
    """Mend a file. Cells come first, then rows as a whole, and repeated rows when all else is mended.

    Each round changes a row by one kind of finding only: what the next would say may no longer be so.
    A finding that comes back, or that no rule can mend, sets its row aside.
    """
    log: list[LogLine] = []
    tried: set[tuple[str, int, str, str]] = set()
    for _ in range(MOST_ROUNDS):
        open_ones = next((found for turn in Turn if (found := mendable(sheet, knowledge, turn))), None)
        if open_ones is None:
            return Mended(sheet, tuple(log), tuple(inspect(sheet, knowledge)))
        sheet = one_round(sheet, open_ones, log, tried)
    return last_resort(sheet, knowledge, log)


def mendable(sheet: Sheet, knowledge: Knowledge, turn: Turn) -> list[Finding]:
    """List what counts and can be mended in a turn."""
    return [finding for finding in inspect(sheet, knowledge, turn) if counted(finding) and finding.changes]


def one_round(
    sheet: Sheet,
    findings: Sequence[Finding],
    log: list[LogLine],
    tried: set[tuple[str, int, str, str]],
) -> Sheet:
    """Make the changes of one turn, at most one kind to a row."""
    rows = {row.number: row for row in sheet.rows}
    touched: dict[int, str] = {}
    for finding in findings:
        for change in finding.changes:
            if change.row in rows and touched.setdefault(change.row, finding.code) == finding.code:
                attempt = (finding.code, change.row, finding.field, finding.value)
                again = finding.row is not None and attempt in tried
                tried.add(attempt)
                apply(rows, Change(change.row) if again else change, finding, log)
    return sheet.with_rows([rows[row.number] for row in sheet.rows if row.number in rows])


def apply(rows: dict[int, Row], change: Change, finding: Finding, log: list[LogLine]) -> None:
    """Make a change and write it down."""
    row = rows[change.row]
    if change.cells is None:
        whole = orjson.dumps(dict(row.cells), default=str).decode()
        log.append(LogLine(row.number, "set aside", finding.code, "", whole, "", finding.message))
        del rows[change.row]
        return
    log += [
        LogLine(row.number, "changed", finding.code, field, shown(row.cells.get(field)), shown(after), finding.message)
        for field, after in change.cells.items()
        if row.cells.get(field) != after
    ]
    rows[change.row] = Row(row.number, {**row.cells, **change.cells})


def shown(value: object) -> str:
    """Write a cell for the log."""
    return value if isinstance(value, str) else "" if value is None else str(value)


def last_resort(sheet: Sheet, knowledge: Knowledge, log: list[LogLine]) -> Mended:
    """Set aside every row that still has an error or a warning; a row less can only bring notes."""
    findings = inspect(sheet, knowledge)
    bad = {change.row: finding for finding in findings if counted(finding) for change in finding.changes}
    rows = {row.number: row for row in sheet.rows}
    for number, finding in sorted(bad.items()):
        apply(rows, Change(number), finding, log)
    sheet = sheet.with_rows([rows[row.number] for row in sheet.rows if row.number in rows])
    return Mended(sheet, tuple(log), tuple(inspect(sheet, knowledge)))


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
    if out.exists() and not change_log_path(out).is_file():
        raise UsageError(
            "a mended copy replaces an earlier one only", where=str(out),
            expected="a new file, or one with its .changes.csv",
            found="a file that no audit wrote", hint="Name another file after --fix.",
        )  # fmt: skip
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
