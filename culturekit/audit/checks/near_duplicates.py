"""Names within a country and concept that are nearly the same, and artifacts whose vectors are."""

from collections.abc import Iterator

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Code, Finding, quoted
from culturekit.audit.folding import fold
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Row, Sheet
from culturekit.builders.folded_names import folded, without_accents

__all__ = ["CHECK", "SHORTEST"]

NEAR_NAME = Code(
    "near-name",
    "note",
    "two names of a country and concept are equal but for accents and marks, or but for a letter or two",
    "nothing",
)
NEAR_VECTORS = Code(
    "near-vectors", "note", "two artifacts of a country and concept have nearly one vector (needs --index)", "nothing"
)
SHORTEST = 6
"""Letters that a name must have before one that differs in a letter is worth a look."""


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Find pairs; each row is named once, with the first row it is near to."""
    if not sheet.has("name"):
        return
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in sheet.rows:
        country, concept = sheet.country(row), sheet.concept(row)
        if country is not None and concept is not None:
            cells.setdefault((country.iso, concept), []).append(row)
    for rows in cells.values():
        yield from near_names(sheet, rows)
        if knowledge.near_artifacts:
            yield from near_vectors(sheet, rows, knowledge)


def near_names(sheet: Sheet, rows: list[Row]) -> Iterator[Finding]:
    """Find names that share a form with one letter less: they differ in a letter, or in two neighbours."""
    known: dict[str, Row] = {}
    for row in rows:
        name = sheet.text(row, "name")
        bare = without_accents(folded(name))
        forms = [bare, *shortened(bare)]
        near = next((other for form in forms if (other := known.get(form)) is not None), None)
        if near is not None and fold(sheet.text(near, "name")) != fold(name):
            yield NEAR_NAME.finding(
                f"{quoted(name)} is nearly {quoted(sheet.text(near, 'name'))} of row {near.number}",
                row=row.number,
                field=sheet.column("name"),
                value=name,
                suggestion="look whether both are one",
            )
        for form in forms:
            known.setdefault(form, row)


def shortened(name: str) -> list[str]:
    """Give a name with each of its letters left out in turn; a digit tells two names apart and stays."""
    if not SHORTEST <= len(name) <= 100:
        return []
    return [name[:place] + name[place + 1 :] for place in range(len(name)) if not name[place].isdigit()]


def near_vectors(sheet: Sheet, rows: list[Row], knowledge: Knowledge) -> Iterator[Finding]:
    """Find rows whose artifacts have nearly one vector."""
    known = {sheet.text(row, "id").strip(): row for row in rows}
    for (one, other), cosine in sorted(knowledge.near_artifacts.items()):
        if one in known and other in known:
            first, later = sorted((known[one], known[other]), key=lambda row: row.number)
            name = sheet.text(later, "name")
            yield NEAR_VECTORS.finding(
                f"{quoted(name)} looks like {quoted(sheet.text(first, 'name'))} of row {first.number}, cosine "
                f"{cosine:.3f}",
                row=later.number,
                field=sheet.column("name"),
                value=name,
                suggestion="look whether both are one",
            )


CHECK = Check(Turn.FILE, (NEAR_NAME, NEAR_VECTORS), find)
