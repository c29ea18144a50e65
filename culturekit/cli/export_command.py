"""`culturekit annotate export`: forms for people."""

from typing import Annotated

import typer

from culturekit.cli.options import AsJson, Out, Seed, Wait, Workers
from culturekit.cli.stage_command import run_one
from culturekit.core.choices import SHORTLIST
from culturekit.people.export import ExportOptions
from culturekit.people.stages import ExportFiles, export_stage


def export(
    scheme: Annotated[str, typer.Argument(help="A shipped scheme, such as cube or audit, or the path of a YAML file.")],
    files: ExportFiles,
    out: Out,
    options: ExportOptions,
    shortlist: Annotated[int, typer.Option(min=2, max=200, help="Artifacts that each image is offered.")] = SHORTLIST,
    seed: Seed = 0,
    workers: Workers = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Write blinded tasks for Label Studio and as an offline form.

    The key stays beside what is handed out.
    """
    stage = export_stage(files, scheme, options, shortlist=shortlist, seed=seed)
    run_one(stage, out, wait=wait, as_json=as_json, workers=workers)
