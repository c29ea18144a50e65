"""Every check, in the order in which mends are made, and an audit of a file that has been read."""

from culturekit.audit import (
    check_characters,
    check_items,
    check_names,
    check_places,
    check_prompts,
    check_repeats,
    check_templates,
)
from culturekit.audit.findings import Check, Code, Finding, Turn
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Sheet

__all__ = ["CHECKS", "CODES", "counted", "inspect"]

CHECKS: tuple[Check, ...] = (
    check_characters.UNICODE_SLIPS,
    check_characters.WHITE_SPACES,
    check_places.COUNTRIES_NAMED,
    check_places.CONCEPTS_NAMED,
    check_items.IDENTIFIERS,
    check_items.STATEMENTS,
    check_prompts.NEGATIVE_PROMPTS,
    check_names.NAMES_USABLE,
    check_names.NAME_CONCEPTS,
    check_items.ITEM_COUNTRIES,
    check_templates.TEMPLATES_FIT,
    check_repeats.REPEATED_ROWS,
    check_names.TWO_CONCEPTS,
    check_prompts.PROMPT_LENGTHS,
    check_repeats.NEAR_DUPLICATES,
    check_places.BALANCE,
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
