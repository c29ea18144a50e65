"""`culturekit score routes`: whether nearest artifacts and a model's tags tell the same of the same images."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.scores.qvs import Missing, Partial, Target, weights_of
from culturekit.cli.stages import run_one

__all__ = ["routes"]


def routes(
    a: Annotated[list[Path], typer.Option(help="Matches of one route, as `index map` writes; one table or several.")],
    b: Annotated[list[Path], typer.Option(help="Matches of the other route, as `tag` writes; one table or several.")],
    out: Out,
    judgments: Annotated[
        list[Path] | None,
        typer.Option(help="Judgments beside the tags: they tell what shows nothing from what got no answer."),
    ] = None,
    quality: Annotated[list[Path] | None, typer.Option(help="Quality of the images; with it qVS is scored.")] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(help="Weights of continent, country and artifact, or a name; repeatable. [the five named ones]"),
    ] = None,
    q: Annotated[list[float] | None, typer.Option(help="Order of the Vendi score; repeatable, inf is one. [1]")] = None,
    size: Annotated[int, typer.Option(min=2, help="Images per batch.")] = 8,
    missing: Annotated[
        Missing, typer.Option(help="Missing labels: each unlike all others, or all the same.")
    ] = "distinct",
    partial: Annotated[
        Partial, typer.Option(help="Incomplete batches: dropped, or divided by the full size as in CUBE's notebook.")
    ] = "drop",
    target: Annotated[
        Target, typer.Option(help="Intervals speak about these prompts, or about all that at least 20 stand for.")
    ] = "these",
    confidence: Annotated[float, typer.Option(help="How often intervals are to hold the truth.")] = 0.95,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score two routes on the images that both know, side by side, and say how far they agree image by image."""
    from culturekit.metrics.diversity.kernels import STANDARD_KERNELS
    from culturekit.metrics.scoring.score_qvs import QvsOptions
    from culturekit.pipeline.scores.routes_stage import routes_stage

    first, *others = q or [1.0]
    options = QvsOptions(
        kernels=tuple(map(weights_of, kernel or STANDARD_KERNELS)),
        q=first,
        other_orders=tuple(others),
        size=size,
        missing=missing,
        partial=partial,
        target=target,
        confidence=confidence,
    )
    stage = routes_stage(
        numbered(a), numbered(b), options, quality=numbered(quality or []), judgments=numbered(judgments or [])
    )
    run_one(stage, out, also=also, wait=wait, as_json=as_json)


def numbered(paths: list[Path]) -> dict[str, Path]:
    """Number several tables of a kind; a single one has no number."""
    return {"" if len(paths) == 1 else str(number): path for number, path in enumerate(paths)}
