"""Under which concepts names are known: in the file itself, and in what is at hand besides."""

from culturekit.audit.folding import fold
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Sheet

__all__ = ["concepts_of_name"]

ROWS_NAMED = 3


def concepts_of_name(sheet: Sheet, knowledge: Knowledge) -> dict[str, dict[str, str]]:
    """Map folded names to the concepts they are known under, each with the place that says so."""
    rows: dict[str, dict[str, list[int]]] = {}
    for row in sheet.rows:
        concept = sheet.concept(row)
        if concept is not None and (name := fold(sheet.text(row, "name"))):
            rows.setdefault(name, {}).setdefault(concept, []).append(row.number)
    known = {
        name: {concept: f"row {', '.join(map(str, numbers[:ROWS_NAMED]))}" for concept, numbers in own.items()}
        for name, own in rows.items()
    }
    for source in knowledge.sources:
        for name, concepts in source.concepts_of_name.items():
            for concept in concepts:
                known.setdefault(name, {}).setdefault(concept, source.name)
    return known
