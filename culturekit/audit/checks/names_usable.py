"""Names that no artifact can have."""

from collections.abc import Iterator

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Change, Code, Finding, quoted
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Sheet
from culturekit.builders.filtering.name_rules import name_problem
from culturekit.llm.untrusted.hidden_characters import without_hidden_characters

__all__ = ["CHECK"]

UNUSABLE = Code(
    "name-unusable",
    "error",
    "no name, only a QID, no letters, far too long, or the title of a list, category or disambiguation",
    "the row is set aside",
)
ANY_SCRIPT = ("und",)
"""A language that is written in no particular script: names of all scripts are names."""


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Hold every name against the rules that candidates are held against."""
    if not sheet.has("name"):
        return
    for row in sheet.rows:
        name = sheet.text(row, "name")
        problem = name_problem(without_hidden_characters(name), languages=ANY_SCRIPT)
        if problem is not None:
            yield UNUSABLE.finding(
                f"{quoted(name)}: {problem[0]}",
                row=row.number,
                field=sheet.column("name"),
                value=name,
                suggestion="name the artifact, or leave the row out",
                changes=(Change(row.number),),
            )


CHECK = Check(Turn.ROW, (UNUSABLE,), find)
