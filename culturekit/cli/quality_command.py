"""`culturekit quality`: how good images are, by a scorer."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.completions import spec_completer
from culturekit.cli.options import Also, AsJson, Out, Wait, Workers
from culturekit.cli.stages import run_one

__all__ = ["quality"]


def quality(
    images: Annotated[Path, typer.Option(help="Images table.")],
    scorer: Annotated[
        str,
        typer.Option(
            help="Who scores, as a SPEC: embedded, hpsv2, pickscore or clipscore.",
            autocompletion=spec_completer("culturekit.index.scorers:SCORERS"),
        ),
    ],
    out: Out,
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts the images were asked for by. [what the images table says was sent]")
    ] = None,
    workers: Workers = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score the quality of every image; what cannot be scored is listed with its reason."""
    from culturekit.index.scorers import SCORERS
    from culturekit.pipeline.steps.image_stages import quality_stage

    SCORERS.check(scorer)
    stage = quality_stage(images, scorer=scorer, prompts=prompts)
    run_one(stage, out, workers=workers, also=also, wait=wait, as_json=as_json)
