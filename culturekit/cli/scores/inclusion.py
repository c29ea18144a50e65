"""`culturekit score task1` and `task2`: what people of three regions see in images."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.stages import run_one
from culturekit.defaults import CONFIDENCE

__all__ = ["task1", "task2"]

Least = Annotated[
    float,
    typer.Option(
        "--least", min=0, max=1, help="Share of photographs in which an annotator must see the object; 0 keeps all."
    ),
]
Confidence = Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of the intervals.")]


def task1(
    annotations: Annotated[Path, typer.Option("--task1", help="Table of what people said of triplets.")],
    out: Out,
    features: Annotated[
        list[str] | None,
        typer.Option(help="EXTRACTOR=FOLDER: vectors of the images in the triplets; repeat it to compare extractors."),
    ] = None,
    real: Annotated[
        str | None, typer.Option(help="EXTRACTOR=FOLDER: vectors of all real images, the manifold of appeal.")
    ] = None,
    k: Annotated[int, typer.Option(min=1, help="Neighbours that the manifold's balls reach to.")] = 5,
    bins: Annotated[int, typer.Option(min=1, help="Bins of triplet distances.")] = 10,
    least: Least = 0.9,
    confidence: Confidence = CONFIDENCE,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score agreement on similarity and appeal, and how they follow distances and the manifold of real images."""
    from culturekit.metrics.scoring.score_task1 import Task1Options
    from culturekit.pipeline.scores.inclusion_stages import task1_stage

    folders = {name: Path(folder) for name, folder in (pair_of(text, "--features") for text in features or ())}
    manifold = None if real is None else pair_of(real, "--real")
    stage = task1_stage(
        annotations,
        Task1Options(least=least, bins=bins, confidence=confidence),
        features=folders,
        real=None if manifold is None else (manifold[0], Path(manifold[1])),
        k=k,
    )
    run_one(stage, out, also=also, wait=wait, as_json=as_json)


def task2(
    annotations: Annotated[
        Path, typer.Option("--task2", help="What people saw in single images: CSV in the public layout, or our table.")
    ],
    out: Out,
    source: Annotated[
        list[str] | None,
        typer.Option(help="MODEL=PATTERN of img_path, such as ldm=ldm21/*; what fits none is real. Repeatable."),
    ] = None,
    least: Least = 0.9,
    confidence: Confidence = CONFIDENCE,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score how often people in and out of a region see it in its images, consistency, and agreement."""
    from culturekit.metrics.scoring.score_task2 import Task2Options
    from culturekit.pipeline.scores.inclusion_stages import task2_stage

    options = Task2Options(least=least, confidence=confidence)
    stage = task2_stage(annotations, options, sources=dict(pair_of(text, "--source") for text in source or ()))
    run_one(stage, out, also=also, wait=wait, as_json=as_json)


def pair_of(text: str, option: str) -> tuple[str, str]:
    """Read NAME=VALUE."""
    from culturekit.errors import UsageError

    name, mark, value = text.partition("=")
    if not (name and mark and value):
        raise UsageError(f"{option} is a name, an equals sign and a value", expected="NAME=VALUE", found=repr(text))
    return name, value
