"""`culturekit score audit-sample`: which images people should look at."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Seed, Wait
from culturekit.cli.stages import run_one

__all__ = ["draw_audit_sample"]


def draw_audit_sample(
    matches: Annotated[Path, typer.Option(help="Table that `index map` wrote.")],
    out: Out,
    images: Annotated[int, typer.Option("--n", min=10, help="Images per model and concept.")] = 150,
    seed: Seed = 0,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Draw the images whose audit corrects the diversity, spread evenly over what they were mapped to."""
    from culturekit.pipeline.steps.audit_stages import audit_sample_stage

    run_one(audit_sample_stage(matches, images=images, seed=seed), out, also=also, wait=wait, as_json=as_json)
