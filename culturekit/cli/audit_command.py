"""`culturekit audit`: mistakes of a file before it is published; `audit plan`: how many images people look at."""

import json
from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import AsJson, Seed

__all__ = ["audit", "audit_plan_command"]

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


def audit_plan_command(
    run: Annotated[Path, typer.Argument(help="Finished run, with matches of every model.")],
    width: Annotated[
        float, typer.Option(min=0.001, max=1, help="Of the interval of each model's corrected diversity.")
    ] = 0.05,
    kernel: Annotated[
        str, typer.Option(help="Diversity that is meant: country, continent or hierarchical.")
    ] = "country",
    accuracy: Annotated[
        float | None,
        typer.Option(min=0.01, max=1, help="How often the mapping is right. [by the run's diagnosis, else 0.8]"),
    ] = None,
    audits: Annotated[
        Path | None, typer.Option(help="Answers of a first audit, 30 images of each concept: nothing is assumed then.")
    ] = None,
    per_hour: Annotated[float, typer.Option(min=1, help="Answers that one person gives in an hour.")] = 200.0,
    people: Annotated[int, typer.Option(min=1, max=50, help="People who look at every image.")] = 3,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Say how many images people would have to look at for an interval of a width, and in how many hours."""
    from culturekit.pipeline.planning.audit_plan import AuditWish, as_data, audit_plan, audit_plan_lines

    wish = AuditWish(width, kernel, accuracy, per_hour, people, seed)
    plans, source = audit_plan(run, wish, pilot=audits)
    if as_json:
        print(json.dumps(as_data(plans, source), ensure_ascii=False))
        return
    for line in audit_plan_lines(plans, source, wish):
        print(line)
