"""`culturekit score agreement`: how far people agree, pool by pool, and where pools and judges part."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, Out, Seed, Wait
from culturekit.cli.stages import run_one

__all__ = ["agreement"]

PoolsBy: TypeAlias = Literal["region", "in-region", "recruitment"]
Level: TypeAlias = Literal["nominal", "ordinal", "interval"]
Correction: TypeAlias = Literal["holm", "benjamini-hochberg"]


def agreement(
    annotations: Annotated[Path, typer.Option(help="What people answered.")],
    out: Out,
    judgments: Annotated[
        list[Path] | None, typer.Option(help="Verdicts of judge models to hold against people; repeatable.")
    ] = None,
    pools: Annotated[
        PoolsBy, typer.Option(help="What makes a pool: region, in-region or not, or the flag recruitment:NAME.")
    ] = "region",
    level: Annotated[Level, typer.Option(help="Of Krippendorff's alpha for ratings that are numbers.")] = "ordinal",
    correction: Annotated[Correction, typer.Option(help="How p values are corrected for their number.")] = "holm",
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(min=99, help="Resamples of each bootstrap and permutation test.")] = 2000,
    seed: Seed = 0,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score the agreement of annotators within each pool, and the divergence between pools."""
    from culturekit.metrics.scoring.score_agreement import AgreementOptions
    from culturekit.pipeline.scores.agreement_stage import agreement_stage

    options = AgreementOptions(
        by=pools, level=level, correction=correction, confidence=confidence, resamples=resamples, seed=seed
    )
    stage = agreement_stage(annotations, options, judgments=judgments or ())
    run_one(stage, out, also=also, wait=wait, as_json=as_json)
