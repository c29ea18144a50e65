"""`culturekit score audit-sample`: which images people should look at."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, Out, Seed, Wait
from culturekit.cli.stages import run_one

__all__ = ["draw_audit_sample"]

Per: TypeAlias = Literal["model", "concept"]


def draw_audit_sample(
    matches: Annotated[Path, typer.Option(help="Table that `index map` wrote.")],
    out: Out,
    images: Annotated[
        int, typer.Option("--n", min=10, help="Images to draw of each model; each of its concepts gets 30 or more.")
    ] = 150,
    per: Annotated[
        Per, typer.Option(help="Of what so many are drawn: of a model in all, or of each concept of a model.")
    ] = "model",
    seed: Seed = 0,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Draw the images whose audit corrects the diversity, spread evenly over what they were mapped to."""
    from culturekit.pipeline.steps.audit_stages import audit_sample_stage

    run_one(audit_sample_stage(matches, images=images, per=per, seed=seed), out, also=also, wait=wait, as_json=as_json)
