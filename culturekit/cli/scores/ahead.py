"""`culturekit score ahead`: what images of activities show, against what they should show."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.stages import run_one

__all__ = ["ahead"]


Aggregate: TypeAlias = Literal["dimension", "pooled"]
Reduce: TypeAlias = Literal["mean", "max"]
Target: TypeAlias = Literal["these", "population"]


def ahead(
    images: Annotated[list[Path], typer.Option(help="Table of images; repeat it for more than one.")],
    prompts: Annotated[Path, typer.Option(help="Table of their prompts, with the country of each.")],
    descriptors: Annotated[Path, typer.Option(help="Table of what a picture of each prompt should show.")],
    extracted: Annotated[list[Path], typer.Option(help="Judgments of the task extract: what images show; repeatable.")],
    phrases: Annotated[Path, typer.Option(help="Folder of vectors, one per phrase, its id the phrase.")],
    out: Out,
    stereotypes: Annotated[
        list[Path] | None, typer.Option(help="Judgments of the task stereotype, for EXAG and FAITH; repeatable.")
    ] = None,
    real: Annotated[str | None, typer.Option(help="Model under whose name real images stand among the images.")] = None,
    tau: Annotated[
        float | None, typer.Option(min=-1, max=1, help="Similarity from which descriptors are the same. [0.52]")
    ] = None,
    quantile: Annotated[
        float | None, typer.Option(min=0, max=1, help="Find tau instead, as this quantile over the real images.")
    ] = None,
    aggregate: Annotated[
        Aggregate, typer.Option(help="Mean over dimensions, or one share of all descriptors.")
    ] = "dimension",
    reduce: Annotated[Reduce, typer.Option(help="Over stereotypes: their mean, or the worst.")] = "mean",
    target: Annotated[
        Target | None,
        typer.Option(help="What intervals speak about: these prompts, or others like them. [others, if 20 or more]"),
    ] = None,
    scheme: Annotated[str, typer.Option(help="Scheme that groups countries.")] = "cultivate",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score alignment, hallucination, exaggeration, faithfulness and diversity against cultural descriptors."""
    from culturekit.errors import UsageError
    from culturekit.families.inputs import NamedVectors
    from culturekit.metrics.ahead.thresholds import DEFAULT_TAU
    from culturekit.metrics.scoring.score_ahead import AheadOptions
    from culturekit.pipeline.scores.ahead_stage import AheadFiles, ahead_stage, groups_of

    if tau is not None and quantile is not None:
        raise UsageError("--tau states the threshold and --quantile finds it", hint="Give one of the two.")
    files = AheadFiles(images, prompts, descriptors, extracted, phrases, stereotypes or [])
    options = AheadOptions(
        tau=DEFAULT_TAU if tau is None else tau,
        quantile=quantile,
        aggregate=aggregate,
        reduce=reduce,
        real=real,
        target=target,
        groups=groups_of(scheme),
        scheme=scheme,
        encoder=NamedVectors(phrases).encoder,
    )
    run_one(ahead_stage(files, options), out, also=also, wait=wait, as_json=as_json)
