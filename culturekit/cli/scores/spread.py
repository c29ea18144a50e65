"""`culturekit score pairs` and `culturekit score spread`: how unlike the images of a batch look."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait, Workers
from culturekit.cli.scores.levels import TargetName
from culturekit.cli.stages import run_one

__all__ = ["pairs", "spread"]

Size = Annotated[int, typer.Option(min=2, help="Images per batch, as of VS.")]


def pairs(
    images: Annotated[Path, typer.Option(help="Images table: model, prompt, repeat, slot.")],
    measure: Annotated[
        str, typer.Option(help="Who measures, as a SPEC: lpips:FILE, or lpips:HEADS?backbone=FILE (safetensors).")
    ],
    out: Out,
    size: Size = 8,
    workers: Workers = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Measure how far every two pictures of a batch are apart, and average over the batch; score spread takes it."""
    from culturekit.pipeline.scores.spread_stage import pair_stage

    run_one(pair_stage(images, measure, size=size), out, workers=workers, also=also, wait=wait, as_json=as_json)


def spread(
    images: Annotated[list[Path], typer.Option(help="Images table: model, prompt, repeat, slot; repeatable.")],
    out: Out,
    vectors: Annotated[
        list[Path] | None, typer.Option(help="Folder of vectors of these images; adds the mean cosine; repeatable.")
    ] = None,
    distances: Annotated[
        list[Path] | None, typer.Option(help="Folder that `score pairs` wrote; adds mean LPIPS; repeatable.")
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts of the images, where their table lacks the object.")
    ] = None,
    size: Size = 8,
    target: Annotated[
        TargetName, typer.Option(help="Intervals speak about these prompts, or about all that at least 20 stand for.")
    ] = "these",
    confidence: Annotated[float, typer.Option(help="How often intervals are to hold the truth.")] = 0.95,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score how unlike the images of a batch look: mean cosine and mean LPIPS, to be read beside VS."""
    from culturekit.metrics.scoring.score_spread import SpreadOptions
    from culturekit.pipeline.scores.spread_stage import SpreadFiles, spread_stage
    from culturekit.pipeline.scores.value_files import numbered

    files = SpreadFiles(
        numbered("images", images), numbered("vectors", vectors or ()), numbered("distances", distances or ()), prompts
    )
    options = SpreadOptions(size=size, target=target, confidence=confidence)
    run_one(spread_stage(files, options), out, also=also, wait=wait, as_json=as_json)
