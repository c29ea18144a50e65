"""Rows of a CSV file as spreadsheets save it: with or without a byte-order mark, comma, semicolon or tab."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from culturekit.errors import ConfigError, Problem, UsageError
from culturekit.storage.spreadsheet_cells import csv_text, unguarded

if TYPE_CHECKING:
    from _csv import Reader

__all__ = ["SheetRow", "read_sheet_rows", "sheet_bytes"]

LARGEST = 64 * 1024 * 1024
NAMED_DIVIDER = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
"""A first line by which some spreadsheets say what divides the cells."""


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row, the line it begins on, and its cells by column name: no white space around them, no guard before them."""

    line: int
    cells: Mapping[str, str]


def read_sheet_rows(path: Path, needed: Sequence[str]) -> list[SheetRow]:
    """Read the rows of a sheet that has at least the needed columns; wholly empty rows are nothing."""
    text = text_of(path)
    named = NAMED_DIVIDER.match(text)
    first = next((line for line in text.splitlines() if line.strip()), "")
    divider = named[1] if named else max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=divider, strict=True)
    try:
        rows = [(line, cells) for line, cells in numbered(reader) if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise UsageError(f"not a CSV file: {error}", where=f"{path}:{reader.line_num}") from error
    rows = rows[1:] if named else rows
    header = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    missing = [name for name in needed if name not in header]
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if missing or twice:
        problem = f"lacks the column {', '.join(missing)}" if missing else f"has the column {', '.join(twice)} twice"
        found = ", ".join(header) or "an empty file"
        raise UsageError(f"the sheet {problem}", where=str(path), expected=", ".join(needed), found=found)
    width = len(header)
    longer = [
        Problem(f"{len(cells)} cells under {width} columns", str(path), line)
        for line, cells in rows
        if any(cell.strip() for cell in cells[width:])
    ]
    if longer:
        raise ConfigError(longer)
    return [
        SheetRow(
            line, {name: unguarded(cell.strip()) for name, cell in zip(header, padded(cells, width), strict=False)}
        )
        for line, cells in rows[1:]
    ]


def numbered(reader: "Reader") -> Iterator[tuple[int, list[str]]]:
    """Give each row with the line it begins on; a quoted cell can run over several."""
    begins = 1
    for cells in reader:
        yield begins, cells
        begins = reader.line_num + 1


def padded(cells: list[str], width: int) -> list[str]:
    """Fill up a row whose last cells a spreadsheet left out."""
    return cells + [""] * (width - len(cells))


def text_of(path: Path) -> str:
    """Read UTF-8, with or without its mark."""
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError("the sheet is too large", where=str(path), expected=f"at most {LARGEST:,} bytes")
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError("there is no such file", where=str(path)) from error
    except IsADirectoryError as error:
        raise UsageError("a folder, not a sheet", where=str(path), expected="a CSV file") from error
    except UnicodeDecodeError as error:
        raise UsageError(
            "the sheet is not in UTF-8",
            where=str(path),
            found=f"byte {error.start} is {error.object[error.start]:#04x}",
            hint="Save it from the spreadsheet as `CSV UTF-8`.",
        ) from error


def sheet_bytes(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> bytes:
    """Write a sheet that spreadsheets open as text: UTF-8 with its mark, formulas guarded."""
    return csv_text(columns, rows, line_end="\r\n").encode("utf-8-sig")
