"""`culturekit score within`: how diverse images are inside the country that their prompt names."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.scores.qvs import Missing, Partial
from culturekit.cli.stages import run_one

__all__ = ["within"]


def within(
    matches: Annotated[list[Path], typer.Option(help="Table that `index map` wrote; repeatable.")],
    prompts: Annotated[Path, typer.Option(help="Table of the prompts: which country each names.")],
    out: Out,
    q: Annotated[list[float] | None, typer.Option(help="Order of the Vendi score; repeatable, inf is one. [1]")] = None,
    size: Annotated[int, typer.Option(min=2, help="Images per batch.")] = 8,
    missing: Annotated[
        Missing, typer.Option(help="Missing labels: each unlike all others, or all the same.")
    ] = "distinct",
    partial: Annotated[
        Partial, typer.Option(help="Incomplete batches: dropped, or divided by the full size as in CUBE's notebook.")
    ] = "drop",
    confidence: Annotated[float, typer.Option(help="How often intervals are to hold the truth.")] = 0.95,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score diversity within each country that prompts name, by artifact, and its mean over the countries."""
    from culturekit.families.value_files import numbered
    from culturekit.metrics.scoring.score_qvs import QvsOptions
    from culturekit.pipeline.scores.within_stage import within_stage

    first, *others = q or [1.0]
    options = QvsOptions(
        q=first, other_orders=tuple(others), size=size, missing=missing, partial=partial, confidence=confidence
    )
    run_one(within_stage(numbered("matches", matches), prompts, options), out, also=also, wait=wait, as_json=as_json)
