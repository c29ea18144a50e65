"""Concepts that are not known, or go by several names in one file."""

from collections import Counter
from collections.abc import Iterator

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Change, Code, Finding, quoted
from culturekit.audit.folding import fold
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Row, Sheet
from culturekit.builders.space.public_cube import CONCEPTS

__all__ = ["CHECK"]

UNKNOWN = Code("concept-unknown", "error", "a concept that is none of CUBE's, or none at all", "the row is set aside")
SPELLING = Code("concept-spelling", "warning", "a concept in other letters than its own", "its own letters")
MIXED = Code(
    "concept-mixed", "warning", "one concept under several names in one file (landscapes, landmarks)", "its own name"
)


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at the concept of every row, then at the names that each concept goes by."""
    names = {fold(name): name for name in CONCEPTS}
    names |= {fold(known): known for row in sheet.rows if (known := sheet.concept(row)) and known == fold(known)}
    for row in sheet.rows:
        stated = sheet.text(row, "concept").strip()
        own = names.get(fold(stated))
        if own is not None and stated != own:
            yield about(SPELLING, sheet, row, f"{quoted(stated)} is {own}", own)
        elif sheet.concept(row) is None:
            yield about(UNKNOWN, sheet, row, f"{quoted(stated)} is no concept", None)
    yield from mixed(sheet)


def about(code: Code, sheet: Sheet, row: Row, message: str, wanted: str | None) -> Finding:
    """Say what is wrong with a concept."""
    column = sheet.column("concept")
    return code.finding(
        message,
        row=row.number,
        field=column,
        value=sheet.text(row, "concept"),
        suggestion=f"one of {', '.join(sorted(set(CONCEPTS.values())))}"
        if wanted is None
        else f"write {quoted(wanted)}",
        changes=(Change(row.number, None if wanted is None else {column: wanted}),),
    )


def mixed(sheet: Sheet) -> Iterator[Finding]:
    """Say where a concept goes by several names."""
    column = sheet.column("concept")
    counts = Counter(sheet.text(row, "concept").strip() for row in sheet.rows)
    for concept in sorted(set(CONCEPTS.values())):
        names = sorted(name for name, own in CONCEPTS.items() if own == concept and counts[name])
        if len(names) > 1:
            told = ", ".join(f"{name} ({counts[name]:,} rows)" for name in names)
            others = [row for row in sheet.rows if sheet.text(row, "concept").strip() in set(names) - {concept}]
            yield MIXED.finding(
                f"{concept} go by several names: {told}",
                row=None,
                field=column,
                value=", ".join(names),
                suggestion=f"write {quoted(concept)} everywhere",
                changes=tuple(Change(row.number, {column: concept}) for row in others),
            )


CHECK = Check(Turn.CELL, (UNKNOWN, SPELLING, MIXED), find)
