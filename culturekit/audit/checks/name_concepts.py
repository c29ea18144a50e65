"""Names and items that belong to another concept."""

from collections.abc import Iterator

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Change, Code, Finding, quoted
from culturekit.audit.folding import fold
from culturekit.audit.identity import item_of
from culturekit.audit.knowledge import Knowledge, Source
from culturekit.audit.sheet import Row, Sheet

__all__ = ["CHECK"]

OTHER = Code(
    "name-concept",
    "error",
    "the artifact, by its QID or else its name, is known under other concepts only (needs --graph or --cspace)",
    "the row is set aside: the file does not say what belongs there",
)


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Hold the concept of every row against what is known."""
    for row in sheet.rows:
        concept, name = sheet.concept(row), fold(sheet.text(row, "name"))
        if concept is None:
            continue
        for source in knowledge.sources:
            known = concepts_in(source, item_of(sheet, row), name)
            if known and concept not in known:
                yield otherwise(sheet, row, source.name, sorted(known))
                break


def concepts_in(source: Source, item: str | None, name: str) -> frozenset[str]:
    """Give the concepts that a source knows an artifact under; an item it knows is asked before a name."""
    known = source.concepts_of_item.get(item or "")
    return known if known is not None else frozenset() if item else source.concepts_of_name.get(name, frozenset())


def otherwise(sheet: Sheet, row: Row, source: str, known: list[str]) -> Finding:
    """Say under which concepts an artifact is known."""
    name = sheet.text(row, "name") or sheet.text(row, "id")
    return OTHER.finding(
        f"{quoted(name)} is given as {sheet.concept(row)}; {source} knows it as {', '.join(known)}",
        row=row.number,
        field=sheet.column("name" if sheet.has("name") else "id"),
        value=name,
        suggestion=f"move it to {', '.join(known)}, or name another artifact",
        changes=(Change(row.number),),
    )


CHECK = Check(Turn.ROW, (OTHER,), find)
