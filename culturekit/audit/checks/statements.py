"""Statement values that are no items, and cells that say in several ways that there are none."""

from collections import Counter
from collections.abc import Iterator

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Change, Code, Finding, quoted
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Sheet
from culturekit.audit.statement_cells import EMPTY, items_of, parts_of, written

__all__ = ["CHECK"]

BROKEN = Code(
    "broken-statement",
    "error",
    "a statement value that is no item, such as {=#1, or a cell that is no list",
    "what is no item is taken out, and the rest written as a list",
)
EMPTIES = Code(
    "empty-statements",
    "warning",
    "cells say in several ways that nothing is known: nan, empty, a space",
    "nan; [] stays, which says that there is no statement",
)
NAMES = {"": "empty", EMPTY: EMPTY}


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at the statement cells of every row, then at how empty ones are written."""
    for column in sheet.layout.statements:
        if column in sheet.columns:
            yield from broken(sheet, column)
            yield from empties(sheet, column)


def broken(sheet: Sheet, column: str) -> Iterator[Finding]:
    """Find what is no item. A bare QID where `id` has none is another slip, and not touched here."""
    for row in sheet.rows:
        cell = str(row.cells.get(column) or "")
        parts = parts_of(cell)
        if parts is None or (column == "P361" and not cell.strip().startswith("[") and slipped(sheet.text(row, "id"))):
            continue
        items = items_of(cell)
        odd = [part for part in parts if part not in items]
        bracketed = cell.strip().startswith("[") and cell.strip().endswith("]")
        if odd or not bracketed:
            wanted = written([part for part in parts if part in items]) if items or bracketed else EMPTY
            yield BROKEN.finding(
                f"{', '.join(map(quoted, odd))} in {column} is no item" if odd else f"{quoted(cell)} is no list",
                row=row.number,
                field=column,
                value=", ".join(odd) or cell,
                suggestion=f"write {quoted(wanted)}",
                changes=(Change(row.number, {column: wanted}),),
            )


def slipped(identifier: str) -> bool:
    """Tell whether `id` holds something else, so that a bare value beside it may be the identifier."""
    said = identifier.strip()
    return said != "LLM" and not said.startswith("Q")


def empties(sheet: Sheet, column: str) -> Iterator[Finding]:
    """Find several ways to say that nothing is known."""
    ways = Counter(
        str(row.cells.get(column) or "") for row in sheet.rows if parts_of(str(row.cells.get(column) or "")) is None
    )
    if len(ways) > 1:
        told = ", ".join(f"{NAMES.get(way, 'blank')} ({count:,} rows)" for way, count in sorted(ways.items()))
        others = [
            row.number
            for row in sheet.rows
            if (cell := str(row.cells.get(column) or "")) != EMPTY and parts_of(cell) is None
        ]
        yield EMPTIES.finding(
            f"nothing known is written in {len(ways)} ways: {told}",
            row=None,
            field=column,
            value=", ".join(NAMES.get(way, "blank") for way in sorted(ways)),
            suggestion=f"write {EMPTY}",
            changes=tuple(Change(number, {column: EMPTY}) for number in others),
        )


CHECK = Check(Turn.CELL, (BROKEN, EMPTIES), find)
