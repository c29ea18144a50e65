"""The stage that compares models: values of finished scores in, differences out."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from culturekit.metrics.scoring.score_comparisons import ComparisonOptions, check_options, score_comparisons
from culturekit.pipeline.family_stage import family_stage
from culturekit.pipeline.scores.value_files import read_values, roles
from culturekit.pipeline.stage import Stage

__all__ = ["comparison_stage"]


def comparison_stage(values: Sequence[Path], options: ComparisonOptions, *, name: str = "scores") -> Stage:
    """Compare every two models on every score that both have."""
    check_options(options)
    settings = asdict(options)
    seed = settings.pop("seed")
    return family_stage(
        "compare",
        roles("values", values),
        settings,
        lambda _: score_comparisons(read_values(values), options=options),
        seeds={"permutations": seed},
        name=name,
    )
