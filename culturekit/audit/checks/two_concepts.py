"""Names that stand under two concepts of one country."""

from collections.abc import Iterator

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Change, Code, Finding, quoted
from culturekit.audit.folding import fold
from culturekit.audit.identity import item_of, same_artifact
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Row, Sheet

__all__ = ["CHECK"]

TWICE = Code(
    "two-concepts",
    "warning",
    "one name in one country stands under two concepts, and not with a QID for each",
    "the later row is set aside, or the one without a QID",
)


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Gather the rows of each name and country."""
    seen: dict[tuple[str, str], list[Row]] = {}
    for row in sheet.rows:
        name, country = fold(sheet.text(row, "name")), sheet.country(row)
        if name and country is not None and sheet.concept(row) is not None:
            seen.setdefault((name, country.iso), []).append(row)
    for rows in seen.values():
        if len(rows) > 1:
            yield from under_two(sheet, rows)


def under_two(sheet: Sheet, rows: list[Row]) -> Iterator[Finding]:
    """Say where rows of one name and country differ in concept; items that differ make them two artifacts."""
    first = rows[0]
    for row in rows[1:]:
        if sheet.concept(row) != sheet.concept(first) and same_artifact(sheet, first, row):
            aside = first if item_of(sheet, first) is None and item_of(sheet, row) is not None else row
            other = row if aside is first else first
            yield TWICE.finding(
                f"{quoted(sheet.text(row, 'name'))} stands under {sheet.concept(first)} (row {first.number}) and "
                f"{sheet.concept(row)} (row {row.number})",
                row=aside.number,
                field=sheet.column("name"),
                value=sheet.text(aside, "name"),
                suggestion=f"keep row {other.number}, or give each its QID",
                changes=(Change(aside.number),),
            )


CHECK = Check(Turn.FILE, (TWICE,), find)
