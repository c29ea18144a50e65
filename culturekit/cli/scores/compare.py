"""`culturekit score compare`: which differences between models are more than chance."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, Out, Seed, Wait
from culturekit.cli.stages import run_one

__all__ = ["compare"]

Target: TypeAlias = Literal["population", "these"]
Correction: TypeAlias = Literal["holm", "benjamini-hochberg"]


def compare(
    values: Annotated[list[Path], typer.Option(help="Table of values beside scores; repeat it for more than one.")],
    out: Out,
    images: Annotated[
        list[Path] | None,
        typer.Option(help="Images of the models, repeatable: differences then say what else differs, such as sizes."),
    ] = None,
    paired: Annotated[bool, typer.Option(help="Compare prompt with prompt, or all prompts with all.")] = True,
    target: Annotated[
        Target, typer.Option(help="Speak about other prompts like these, or about these prompts only.")
    ] = "population",
    correction: Annotated[Correction, typer.Option(help="How p values are corrected for their number.")] = "holm",
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(min=99, help="Permutations of each test.")] = 9999,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Parameter in which compared scores may differ; repeatable.")
    ] = None,
    seed: Seed = 0,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Compare every two models on every score that both have, paired by prompt."""
    from culturekit.metrics.scoring.score_comparisons import ComparisonOptions
    from culturekit.metrics.scoring.value_sets import COUNTS
    from culturekit.pipeline.scores.comparison_stage import comparison_stage

    options = ComparisonOptions(
        paired=paired,
        target=target,
        correction=correction,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        ignore=(*COUNTS, *(ignore or ())),
    )
    run_one(comparison_stage(values, options, images=images or []), out, also=also, wait=wait, as_json=as_json)
