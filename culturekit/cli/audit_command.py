"""`culturekit audit`: mistakes of a file, found before it is published."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli.options import AsJson

if TYPE_CHECKING:
    pass

__all__ = ["audit"]

FINDINGS = 1


def audit(
    file: Annotated[Path, typer.Argument(help="CUBE-style JSON, our cspace or prompts Parquet, or CSV of either.")],
    fix: Annotated[
        Path | None, typer.Option(help="Write a mended copy here, and beside it what was changed (.changes.csv).")
    ] = None,
    graph: Annotated[Path | None, typer.Option(help="Graph that knows items, their concepts and countries.")] = None,
    cspace: Annotated[Path | None, typer.Option(help="Cultural space that knows the same.")] = None,
    index: Annotated[Path | None, typer.Option(help="Index whose vectors show near-duplicates.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say everything that is wrong or odd in a release; leave with 1 when there are errors or warnings."""
    from culturekit.audit.audit_file import audit_file
    from culturekit.audit.told import closing_lines, table_lines

    found = audit_file(file, fix=fix, graph=graph, cspace=cspace, index=index)
    if as_json:
        print(json.dumps(found.as_data(), ensure_ascii=False))
    else:
        for line in table_lines(found.findings):
            print(line)
        for line in closing_lines(found):
            typer.echo(line, err=True)
    if found.has_findings:
        raise typer.Exit(FINDINGS)
