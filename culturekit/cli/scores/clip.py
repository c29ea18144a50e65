"""`culturekit score clip`: how near images are to texts."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.scores.levels import By, Groups, Scheme, Target, mean_options
from culturekit.cli.stages import run_one

__all__ = ["clip"]

TextsOf: TypeAlias = Literal["prompt", "region", "country", "object"]


def clip(
    vectors: Annotated[Path, typer.Option(help="Folder of vectors of images, ids their image ids.")],
    texts: Annotated[Path, typer.Option(help="Folder of vectors of texts, by the same encoder.")],
    images: Annotated[Path, typer.Option(help="Table of the images.")],
    out: Out,
    of: Annotated[
        TextsOf,
        typer.Option(help="What the texts are of; their ids are prompt ids, regions, countries or objects (concepts)."),
    ] = "prompt",
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts of the images, where their table lacks country or object.")
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(help="Cosine from which an object counts as shown, or MODEL=0.25 for one model. [0.21]"),
    ] = None,
    percentile: Annotated[float, typer.Option(min=0, max=100, help="Of the consistency of objects.")] = 10.0,
    annotations: Annotated[
        Path | None, typer.Option(help="Answers of people about the images; adds how often they said yes, by score.")
    ] = None,
    criterion: Annotated[str, typer.Option(help="Of the annotations: the question asked.")] = "object",
    width: Annotated[float, typer.Option(min=0.0001, help="Of a bucket of scores.")] = 0.01,
    by: By = None,
    scheme: Scheme = "un-m49-subregion",
    groups: Groups = None,
    target: Target = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score images against their prompts, regions or objects: CLIPScore, objects shown, consistency."""
    from culturekit.metrics.scoring.score_clip import ClipOptions, thresholds_of
    from culturekit.pipeline.scores.clip_stage import ClipFiles, clip_stage

    stated = {} if threshold is None else {"thresholds": thresholds_of(threshold)}
    options = ClipOptions(
        texts=of,
        percentile=percentile,
        criterion=criterion,
        width=width,
        means=mean_options(by, scheme, groups, target, benchmark="clip"),
        **stated,
    )
    files = ClipFiles(vectors, texts, images, prompts, annotations)
    run_one(clip_stage(files, options), out, also=also, wait=wait, as_json=as_json)
