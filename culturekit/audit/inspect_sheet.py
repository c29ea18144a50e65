"""An audit of a file that has been read."""

from culturekit.audit.all_checks import CHECKS
from culturekit.audit.check import Turn
from culturekit.audit.findings import Finding
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Sheet

__all__ = ["counted", "inspect"]


def inspect(sheet: Sheet, knowledge: Knowledge, turn: Turn | None = None) -> list[Finding]:
    """Run every check, or those of one turn; findings stand in the order of the checks, then of the rows."""
    return [
        finding for check in CHECKS if turn is None or check.turn == turn for finding in check.find(sheet, knowledge)
    ]


def counted(finding: Finding) -> bool:
    """Tell whether a finding counts for the exit code: notes do not."""
    return finding.severity != "note"
