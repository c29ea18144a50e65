"""`culturekit score gaps`: how far groups of countries, or of people, lie apart."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, Out, Seed, Wait
from culturekit.cli.stages import run_one

__all__ = ["gaps"]

Target: TypeAlias = Literal["auto", "population", "these"]
Correction: TypeAlias = Literal["holm", "benjamini-hochberg"]


def gaps(
    values: Annotated[list[Path], typer.Option(help="Table of values beside scores; repeat it for more than one.")],
    scheme: Annotated[
        str,
        typer.Option(
            help="cultivate (Global North and South), un-m49-region, un-m49-subregion, a scheme of --groups, or group: "
            "the groups that stand in the values."
        ),
    ],
    out: Out,
    groups: Annotated[
        Path | None, typer.Option(help="YAML (scheme: group: [countries]) or CSV (scheme,group,country).")
    ] = None,
    target: Annotated[
        Target,
        typer.Option(help="Speak about other prompts, about these only, or the first where 20 prompts allow it."),
    ] = "auto",
    correction: Annotated[Correction, typer.Option(help="How p values are corrected for their number.")] = "holm",
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of the intervals.")] = 0.95,
    seed: Seed = 0,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score the gaps between groups on every score of every model, stratified by country."""
    from culturekit.metrics.scoring.score_gaps import GROUP_COLUMN, GapOptions
    from culturekit.pipeline.scores.country_groups import country_groups
    from culturekit.pipeline.scores.gap_stage import gap_stage

    options = GapOptions(
        scheme=scheme,
        groups={} if scheme == GROUP_COLUMN and groups is None else country_groups(scheme, groups),
        target=target,
        correction=correction,
        confidence=confidence,
        seed=seed,
    )
    run_one(gap_stage(values, options), out, also=also, wait=wait, as_json=as_json)
