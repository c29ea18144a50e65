"""Every check, in the order in which mends are made, and an audit of a file that has been read."""

from culturekit.audit.check import Check, Turn
from culturekit.audit.checks.characters import UNICODE_SLIPS, WHITE_SPACES
from culturekit.audit.checks.items import IDENTIFIERS, ITEM_COUNTRIES, STATEMENTS
from culturekit.audit.checks.names import NAME_CONCEPTS, NAMES_USABLE, TWO_CONCEPTS
from culturekit.audit.checks.places_and_concepts import BALANCE, CONCEPTS_NAMED, COUNTRIES_NAMED
from culturekit.audit.checks.prompts import NEGATIVE_PROMPTS, PROMPT_LENGTHS
from culturekit.audit.checks.repeated_rows import NEAR_DUPLICATES, REPEATED_ROWS
from culturekit.audit.checks.templates_fit import TEMPLATES_FIT
from culturekit.audit.findings import Code, Finding
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Sheet

__all__ = ["CHECKS", "CODES", "counted", "inspect"]

CHECKS: tuple[Check, ...] = (
    UNICODE_SLIPS,
    WHITE_SPACES,
    COUNTRIES_NAMED,
    CONCEPTS_NAMED,
    IDENTIFIERS,
    STATEMENTS,
    NEGATIVE_PROMPTS,
    NAMES_USABLE,
    NAME_CONCEPTS,
    ITEM_COUNTRIES,
    TEMPLATES_FIT,
    REPEATED_ROWS,
    TWO_CONCEPTS,
    PROMPT_LENGTHS,
    NEAR_DUPLICATES,
    BALANCE,
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
