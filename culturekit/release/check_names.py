"""Names that no artifact can have, that belong to another concept, or that stand under two."""

from collections.abc import Iterator

from culturekit.builders.filtering.cspace_filter import name_problem
from culturekit.llm.untrusted import without_hidden_characters
from culturekit.release.findings import Check, Code, Finding, Knowledge, Source, Turn, quoted
from culturekit.release.sheet import Row, Sheet, fold, item_of, same_artifact

UNUSABLE = Code(
    "name-unusable",
    "error",
    "no name, only a QID, no letters, far too long, or the title of a list, category or disambiguation",
    "the row is set aside",
)
ANY_SCRIPT = ("und",)
"""A language that is written in no particular script: names of all scripts are names."""


def find_unusable_names(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Hold every name against the rules that candidates are held against."""
    if not sheet.has("name"):
        return
    for row in sheet.rows:
        name = sheet.text(row, "name")
        problem = name_problem(without_hidden_characters(name), languages=ANY_SCRIPT)
        if problem is not None:
            yield UNUSABLE.set_aside(
                f"{quoted(name)}: {problem[0]}", row=row.number, field=sheet.column("name"), value=name,
                suggestion="name the artifact, or leave the row out",
            )  # fmt: skip


NAMES_USABLE = Check(Turn.ROW, (UNUSABLE,), find_unusable_names)


OTHER_CONCEPT = Code(
    "name-concept",
    "error",
    "the artifact, by its QID or else its name, is known under other concepts only (needs --graph or --cspace)",
    "the row is set aside: the file does not say what belongs there",
)


def find_other_concepts(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
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
    return OTHER_CONCEPT.set_aside(
        f"{quoted(name)} is given as {sheet.concept(row)}; {source} knows it as {', '.join(known)}",
        row=row.number,
        field=sheet.column("name" if sheet.has("name") else "id"),
        value=name,
        suggestion=f"move it to {', '.join(known)}, or name another artifact",
    )


NAME_CONCEPTS = Check(Turn.ROW, (OTHER_CONCEPT,), find_other_concepts)


UNDER_TWO = Code(
    "two-concepts",
    "warning",
    "one name in one country stands under two concepts, and not with a QID for each",
    "the later row is set aside, or the one without a QID",
)


def find_two_concepts(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
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
            yield UNDER_TWO.set_aside(
                f"{quoted(sheet.text(row, 'name'))} stands under {sheet.concept(first)} (row {first.number}) and "
                f"{sheet.concept(row)} (row {row.number})",
                row=aside.number,
                field=sheet.column("name"),
                value=sheet.text(aside, "name"),
                suggestion=f"keep row {other.number}, or give each its QID",
            )


TWO_CONCEPTS = Check(Turn.FILE, (UNDER_TWO,), find_two_concepts)
