"""`culturekit score qvs`: cultural diversity of what images show."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.stages import run_one

__all__ = ["qvs"]


def qvs(
    matches: Annotated[Path, typer.Option(help="Table that `index map` wrote.")],
    out: Out,
    quality: Annotated[Path | None, typer.Option(help="Quality of the images; without it only VS is scored.")] = None,
    size: Annotated[int, typer.Option(min=2, help="Images per batch.")] = 8,
    q: Annotated[float, typer.Option(help="Order of the Vendi score.")] = 1.0,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score cultural diversity: quality, VS and qVS over the five standard kernels."""
    from culturekit.metrics.scoring.score_qvs import QvsOptions
    from culturekit.pipeline.image_stages import score_stage

    ratings = {} if quality is None else {"quality": quality}
    stage = score_stage({"matches": matches}, ratings, QvsOptions(size=size, q=q))
    run_one(stage, out, also=also, wait=wait, as_json=as_json)
