"""Every check, in the order in which mends are made, and an audit of a file that has been read."""

from culturekit.audit.checks import (
    characters,
    items,
    names,
    places_and_concepts,
    prompts,
    repeated_rows,
    templates_fit,
)
from culturekit.audit.findings import Check, Code, Finding, Turn
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Sheet

__all__ = ["CHECKS", "CODES", "counted", "inspect"]

CHECKS: tuple[Check, ...] = (
    characters.UNICODE_SLIPS,
    characters.WHITE_SPACES,
    places_and_concepts.COUNTRIES_NAMED,
    places_and_concepts.CONCEPTS_NAMED,
    items.IDENTIFIERS,
    items.STATEMENTS,
    prompts.NEGATIVE_PROMPTS,
    names.NAMES_USABLE,
    names.NAME_CONCEPTS,
    items.ITEM_COUNTRIES,
    templates_fit.TEMPLATES_FIT,
    repeated_rows.REPEATED_ROWS,
    names.TWO_CONCEPTS,
    prompts.PROMPT_LENGTHS,
    repeated_rows.NEAR_DUPLICATES,
    places_and_concepts.BALANCE,
)

CODES: tuple[Code, ...] = tuple(code for check in CHECKS for code in check.codes)


def inspect(sheet: Sheet, knowledge: Knowledge, turn: Turn | None = None) -> list[Finding]:
    """Run every check, or those of one turn; findings stand in the order of the checks, then of the rows."""
    return [
        finding for check in CHECKS if turn is None or check.turn == turn for finding in check.find(sheet, knowledge)
    ]


def counted(finding: Finding) -> bool:
    """Tell whether a finding counts for the exit code: notes do not."""
    return finding.severity != "note"
