"""`culturekit audit plan`: how many images people would have to look at."""

import json
from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import AsJson, Seed

__all__ = ["audit_plan_command"]


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
