"""Findings told to a person: a table by code, then samples of each."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from culturekit.audit.all_checks import CODES
from culturekit.audit.audit_file import Audit
from culturekit.audit.findings import Finding, Severity
from culturekit.audit.write_sheet import change_log_path

__all__ = ["closing_lines", "table_lines"]

GRAVITY: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}
SAMPLES = 10


def table_lines(findings: Sequence[Finding], *, samples: int = SAMPLES) -> Iterator[str]:
    """Write one block a code, the gravest first: its count, then findings with row, field and what to do."""
    order = {code.name: (GRAVITY[code.severity], place) for place, code in enumerate(CODES)}
    says = {code.name: code.says for code in CODES}
    ordered = sorted(findings, key=lambda each: (order[each.code], -1 if each.row is None else each.row, each.field))
    for code, group in groupby(ordered, key=lambda each: each.code):
        own = list(group)
        yield f"{own[0].severity:<8} {code:<22} {len(own):>7,}  {says[code]}"
        for finding in own[:samples]:
            place = "file" if finding.row is None else f"row {finding.row:,}"
            yield f"    {place:<10} {finding.field}: {finding.message}; {finding.suggestion}"
        if len(own) > samples:
            yield f"    … and {len(own) - samples:,} more (--json lists all)"


def closing_lines(audit: Audit) -> Iterator[str]:
    """Sum up: what was looked at, what was found, and what a mend did."""
    counts = Counter(finding.severity for finding in audit.findings)
    told = ", ".join(f"{counts[severity]:,} {severity}s" for severity in GRAVITY)
    yield f"{audit.rows:,} rows in the {audit.layout} layout: {told}"
    if audit.mended is not None and audit.fixed is not None:
        actions = Counter(line.action for line in audit.mended.log)
        yield (
            f"{audit.fixed}: {len(audit.mended.sheet.rows):,} rows, {actions['changed']:,} cells changed, "
            f"{actions['set aside']:,} rows set aside; every change is in {change_log_path(audit.fixed)}"
        )
