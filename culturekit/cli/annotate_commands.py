"""`culturekit annotate`: forms for people, their answers, and the tables these make."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.stages import run_one

__all__ = ["annotate_app"]

ELSEWHERE = {
    "export": CommandAt(
        "culturekit.cli.export_command:export",
        "cube --images a/images.parquet --images b/images.parquet --prompts prompts/prompts.parquet --out to-rate",
    ),
    "aggregate": CommandAt("culturekit.pipeline.steps.aggregate_stage:AGGREGATE"),
}

annotate_app = typer.Typer(
    no_args_is_help=True,
    help="People in the loop: forms out, answers in.",
    cls=lazy_group("annotate", ELSEWHERE),
)


@annotate_app.command(
    "import", epilog="Example: culturekit annotate import answers-1.json answers-2.json --project to-rate --out rated"
)
def import_command(
    exports: Annotated[list[Path], typer.Argument(help="JSON exports of Label Studio, or files that the form saved.")],
    project: Annotated[Path, typer.Option(help="Folder that `annotate export` wrote, with the key.")],
    out: Out,
    pool: Annotated[
        str | None, typer.Option(help="Name of the pool of people in audits. [the region of each annotator]")
    ] = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Take in answers; what is wrong goes to quarantine with the reason, and the command leaves with 1."""
    from culturekit.pipeline.steps.annotate_stages import import_stage

    run_one(import_stage(project, exports, pool=pool), out, also=also, wait=wait, as_json=as_json)
