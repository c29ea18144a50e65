"""`culturekit audit`: mistakes of a file, found before it is published."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli.options import AsJson
from culturekit.cli.showing import show
from culturekit.core.errors import UsageError, counted

if TYPE_CHECKING:
    from culturekit.release.audit_file import Audit
    from culturekit.release.findings import Finding, Severity


FINDINGS = 1
GRAVITY: "dict[Severity, int]" = {"error": 0, "warning": 1, "note": 2}
SAMPLES = 10


def audit(
    file: Annotated[Path, typer.Argument(help="CUBE-style JSON, our cspace or prompts Parquet, or CSV of either.")],
    fix: Annotated[
        Path | None, typer.Option(help="Write a mended copy here, and beside it what was changed (.changes.csv).")
    ] = None,
    graph: Annotated[Path | None, typer.Option(help="Graph that knows items, their concepts and countries.")] = None,
    roots: Annotated[
        list[str] | None,
        typer.Option(help="Root configs of concepts of your own, by which --graph tells them apart. Repeatable."),
    ] = None,
    cspace: Annotated[Path | None, typer.Option(help="Cultural space that knows the same.")] = None,
    index: Annotated[Path | None, typer.Option(help="Index whose vectors show near-duplicates.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say everything that is wrong or odd in a release.

    Leave with 1 when there are errors or warnings.
    """
    from culturekit.release.audit_file import audit_file

    if roots and graph is None:
        raise UsageError("--roots has no effect alone", expected="--graph")
    found = audit_file(file, fix=fix, graph=graph, cspace=cspace, index=index, roots=roots or ())
    show(found.as_data(), table_lines(found.findings), as_json=as_json)
    for line in () if as_json else closing_lines(found):
        typer.echo(line, err=True)
    if found.has_findings:
        raise typer.Exit(FINDINGS)


def table_lines(findings: "Sequence[Finding]") -> Iterator[str]:
    """Write one block a code, the gravest first: its count, then findings with row, field and what to do."""
    from culturekit.release.audit_file import CODES

    order = {code.name: (GRAVITY[code.severity], index) for index, code in enumerate(CODES)}
    says = {code.name: code.says for code in CODES}
    ordered = sorted(findings, key=lambda each: (order[each.code], -1 if each.row is None else each.row, each.field))
    for code, group in groupby(ordered, key=lambda each: each.code):
        alike = list(group)
        yield f"{alike[0].severity:<8} {code:<22} {len(alike):>7,}  {says[code]}"
        for finding in alike[:SAMPLES]:
            index = "file" if finding.row is None else f"row {finding.row:,}"
            yield f"    {index:<10} {finding.field}: {finding.message}; {finding.suggestion}"
        if len(alike) > SAMPLES:
            yield f"    … and {len(alike) - SAMPLES:,} more (--json lists all)"


def closing_lines(audit: "Audit") -> Iterator[str]:
    """Sum up: what was looked at, what was found, and what a mend did."""
    from culturekit.release.audit_file import change_log_path

    counts = Counter(finding.severity for finding in audit.findings)
    numbers = ", ".join(counted(counts[severity], f"{severity}s") for severity in GRAVITY)
    yield f"{counted(audit.rows, 'rows')} in the {audit.layout} layout: {numbers}"
    if audit.mended is not None and audit.fixed is not None:
        actions = Counter(line.action for line in audit.mended.log)
        yield (
            f"{audit.fixed}: {counted(len(audit.mended.sheet.rows), 'rows')}, "
            f"{counted(actions['changed'], 'cells changed')}, {counted(actions['set aside'], 'rows set aside')}; "
            f"every change is in {change_log_path(audit.fixed)}"
        )
