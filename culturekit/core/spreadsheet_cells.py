"""The one place that writes CSV and JSON lines, and reads CSV: what a spreadsheet would compute gets an apostrophe."""

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson
import polars as pl

from culturekit.core.atomic import whole_file
from culturekit.core.choices import ExportFormat
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.table import Column

_ROWS_AT_ONCE = 20_000


def export_table(parquet: Path, form: ExportFormat) -> Path:
    """Write a table a second time beside itself; Parquet stays the one that stages read."""
    return export_frame(pl.read_parquet(parquet), parquet.with_suffix(f".{form}"))


def export_frame(frame: pl.DataFrame, path: Path) -> Path:
    """Write a table as JSON lines or CSV, by its suffix."""
    with whole_file(path) as file:
        file.writelines(exported(frame, path.suffix))
    return path


def exported(frame: pl.DataFrame, suffix: str) -> Iterator[bytes]:
    """Give a table as JSON lines or CSV, some rows at a time."""
    for start in range(0, max(frame.height, 1), _ROWS_AT_ONCE):
        rows = frame.slice(start, _ROWS_AT_ONCE)
        text = rows.write_ndjson() if suffix == ".jsonl" else frame_as_csv(rows, header=not start)
        yield text.encode("utf-8")


# What spreadsheets trim from the front of a cell, or show as nothing.
BLANK = r"[\s\x00-\x1f\u200b-\u200f\u2028-\u202e\u2060\ufeff]"

# How a cell begins that a spreadsheet would compute; with apostrophes before it, so that reading gives them back.
COMPUTED = rf"'*(?:{BLANK}*[=+\-@＝＋－＠]|[\t\r\n])"

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


def frame_as_csv(frame: pl.DataFrame, *, header: bool = True) -> str:
    """Write a table as CSV; lists and structs are JSON text."""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String or kind in (pl.Categorical, pl.Enum)]
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    plain = {name: pl.col(name).cast(pl.String) for name in texts}
    guard = (
        pl.when(text.str.contains(f"^(?:{COMPUTED})")).then("'" + text).otherwise(text).alias(name)
        for name, text in plain.items()
    )
    written = frame.with_columns(*(json_text(name) for name in nested), *guard)
    return written.rename({name: guarded(name) for name in frame.columns}).write_csv(include_header=header)


def json_text(name: str) -> pl.Expr:
    """Write a list or a struct as JSON."""
    inner = pl.struct(pl.col(name).alias("x")).struct.json_encode()
    return inner.str.strip_prefix('{"x":').str.strip_suffix("}").alias(name)


def sheet_bytes(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> bytes:
    """Write a sheet that spreadsheets open as text: UTF-8 with its mark, formulas guarded."""
    return csv_text(columns, rows, line_end="\r\n").encode("utf-8-sig")


# Rows of a CSV file as spreadsheets save it: with or without a byte-order mark, comma, semicolon or tab.

LARGEST = 512 * 1024 * 1024
# A first line by which some spreadsheets say what divides the cells.
NAMED_DIVIDER = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row, the line it begins on, and its cells by column name, without guards before them."""

    line: int
    cells: Mapping[str, str]


def read_sheet(path: Path, needed: Sequence[str] = (), *, plain: bool = True, whole: bool = False) -> list[SheetRow]:
    """Read the rows of a sheet that has at least the needed columns; wholly empty rows are nothing.

    Columns without a name are passed over. `plain` takes white space from around cells, and capitals from columns;
    `whole` rows have a cell for each column.
    """
    header, rows = _rows_in(path)
    header = [unguarded(name.strip().lower() if plain else name) for name in header]
    missing = [name for name in needed if name not in header]
    twice = sorted({name for name in header if name.strip() and header.count(name) > 1})
    if missing or twice:
        problem = f"lacks the column {', '.join(missing)}" if missing else f"has the column {', '.join(twice)} twice"
        found = ", ".join(header) or "an empty file"
        raise UsageError(f"the sheet {problem}", where=str(path), expected=", ".join(needed), found=found)
    width = len(header)
    longer = [
        Problem(f"{len(cells)} cells under {width} columns", str(path), line)
        for line, cells in rows
        if any(cell.strip() for cell in cells[width:]) or (whole and len(cells) < width)
    ]
    if longer:
        raise ConfigError(longer[:50])
    return [
        SheetRow(line, {
            name: unguarded(cell.strip() if plain else cell)
            for name, cell in zip(header, [*cells, *[""] * (width - len(cells))], strict=False) if name.strip()
        })
        for line, cells in rows
    ]  # fmt: skip


def divider_of(text: str) -> str:
    """Find what divides the cells of a sheet: what it says itself, or what parts its first line most."""
    if named := NAMED_DIVIDER.match(text):
        return named[1]
    first = next((line for line in text.splitlines() if line.strip()), "")
    return max(",;\t", key=lambda divider: len(next(csv.reader([first], delimiter=divider), [])))


def _rows_in(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Read the names of the columns, and each row with the line it begins on; a quoted cell can run over several."""
    text, rows, begins = sheet_text(path), list[tuple[int, list[str]]](), 1
    csv.field_size_limit(16 * 2**20)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=divider_of(text), strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((begins, cells))
            begins = reader.line_num + 1
    except csv.Error as error:
        raise UsageError(
            f"not a CSV file: {error}", where=f"{path}:{reader.line_num}", expected="cells between commas, semicolons "
            "or tabs, in quotes where they hold these", hint="Save it again from the spreadsheet as `CSV UTF-8`.",
        ) from error  # fmt: skip
    rows = rows[1:] if NAMED_DIVIDER.match(text) else rows
    return (rows[0][1], rows[1:]) if rows else ([], [])


def sheet_text(path: Path) -> str:
    """Read UTF-8, with or without its mark."""
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError("the sheet is too large", where=str(path), expected=f"at most {LARGEST:,} bytes")
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError("there is no such file", where=str(path), expected="a CSV file") from error
    except IsADirectoryError as error:
        raise UsageError("a folder, not a sheet", where=str(path), expected="a CSV file") from error
    except UnicodeDecodeError as error:
        raise UsageError(
            "the sheet is not in UTF-8",
            where=str(path),
            found=f"byte {error.start} is {error.object[error.start]:#04x}",
            hint="Save it from the spreadsheet as `CSV UTF-8`.",
        ) from error
    if (index := text.find("\0")) >= 0:
        line = text.count("\n", 0, index) + 1
        raise UsageError("the sheet holds a NUL", where=f"{path}:{line}", expected="text", hint="Save it again.")
    return text


def read_csv_texts(path: Path) -> pl.DataFrame:
    """Read a CSV file with every cell as the text that it was before it was guarded; an empty one is null."""
    rows = read_sheet(path, plain=False)
    columns = list(rows[0].cells) if rows else [unguarded(name) for name in _rows_in(path)[0] if name.strip()]
    return pl.DataFrame({name: [row.cells[name] or None for row in rows] for name in columns},
                        schema=dict.fromkeys(columns, pl.String))  # fmt: skip


# Cells as the types of a declared table.

TRUE, FALSE = {"true", "yes", "1", "ja", "oui", "vrai", "wahr"}, {"false", "no", "0", "nein", "non", "faux", "falsch"}
MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
# What spreadsheets make of other texts: `1-2` becomes 02-Jan, a long number 1.23E+11, a formula #REF!.
RECOMPUTED = re.compile(
    rf"\d{{1,2}}[-. ](?:{MONTHS})[a-z]*(?:[-. ]\d{{2,4}})?|(?:{MONTHS})[a-z]*[-. ]\d{{2,4}}"
    r"|(?:\d{4}[-./]\d\d?[-./]\d\d?|\d\d?[-./]\d\d?[-./]\d{4}|\d\d?/\d\d?/\d\d)(?: \d\d?:\d\d(?::\d\d)?)?"
    r"|\d(?:[.,]\d+)?E[+-]?\d+|#(?:N/A|NAME\?|REF!|VALUE!|DIV/0!|NULL!|NUM!)",
    re.IGNORECASE,
)


def cell_as(text: str, kind: pl.DataType, *, free: bool, divider: str) -> object:
    """Read a cell as a value of a type; `free` is text that may look as a spreadsheet's dates do."""
    if isinstance(kind, pl.String):
        if not free and RECOMPUTED.fullmatch(text):
            raise ValueError("a name or a word, and a spreadsheet made a date, a power or an error of it")
        return text
    if isinstance(kind, pl.Boolean):
        if (word := text.casefold()) not in TRUE | FALSE:
            raise ValueError("true or false")
        return word in TRUE
    if isinstance(kind, pl.List):
        listed = orjson.loads(text)
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise ValueError('a list of texts, such as ["af", "eu"]')
        return listed
    if kind.is_numeric():
        plain = re.fullmatch(r"[-+]?\d+(?:[.,]\d+)?(?:e[-+]?\d+)?", text, re.IGNORECASE)
        if not plain or ("," in text and divider == "," and re.search(r",\d{3}$", text)):
            raise ValueError("a number, with a point or a comma before its decimals and none between thousands")
        number = float(text.replace(",", "."))
        if kind.is_integer() and number != int(number):
            raise ValueError("a whole number")
        return int(number) if kind.is_integer() else number
    return datetime.fromisoformat(text)


def read_sheet_as(path: Path, columns: Mapping[str, Column], free: Collection[str]) -> tuple[pl.DataFrame, list[int]]:
    """Read a sheet whose columns are declared, and the line of each row; an empty cell is null, where one may be."""
    rows, divider = read_sheet(path), divider_of(sheet_text(path))
    known = [name for name in (rows[0].cells if rows else ()) if name in columns]
    found: dict[str, list[object]] = {name: [] for name in known}
    problems: list[Problem] = []
    for row in rows:
        for name in known:
            text, kind = row.cells[name], columns[name].dtype
            try:
                empty = not text and (columns[name].nullable or isinstance(kind, pl.String))
                found[name].append(
                    (None if columns[name].nullable else "")
                    if empty
                    else cell_as(text, kind, free=name in free, divider=divider)
                )
            except ValueError as error:
                problems.append(Problem(f"found {text[:60]!r}, expected {error}", str(path), row.line, name))
    if problems:
        raise ConfigError(problems[:50])
    return pl.DataFrame(found, schema={name: columns[name].dtype for name in known}), [row.line for row in rows]
