"""`culturekit audit plan`, apart from `audit`, which starts three times as fast without what plans need."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import AsJson
from culturekit.cli.showing import progress_for, show
from culturekit.recipes.planning import AuditWish, as_data, audit_plan, audit_plan_lines


def audit_plan_command(
    run: Annotated[Path, typer.Argument(help="Finished run, with matches of every model.")],
    wish: AuditWish,
    audits: Annotated[
        Path | None, typer.Option(help="Answers of a first audit, 30 images of each concept: nothing is assumed then.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how many images people must look at, and for how long.

    It answers for an interval of a width.
    """
    with progress_for(as_json=as_json) as progress:
        progress.stage("audit plan")
        found = audit_plan(run, wish, pilot=audits, progress=progress)
    show(as_data(*found), audit_plan_lines(run, *found, wish), as_json=as_json)
