"""The stage that scores gaps between groups: values of finished scores and a scheme in, gaps out."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from culturekit.metrics.scoring.score_gaps import GapOptions, score_gaps
from culturekit.pipeline.family_stage import family_stage
from culturekit.pipeline.scores.value_files import read_values, roles
from culturekit.pipeline.stage import Stage

__all__ = ["gap_stage"]


def gap_stage(values: Sequence[Path], options: GapOptions, *, name: str = "scores") -> Stage:
    """Compare every two groups on every score of every model; the groups themselves are options."""
    settings = asdict(options)
    seed = settings.pop("seed")
    return family_stage(
        "gaps",
        roles("values", values),
        settings,
        lambda _: score_gaps(read_values(values), options=options),
        seeds={"permutations": seed},
        name=name,
    )
