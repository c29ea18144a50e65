"""How far groups of countries are apart in what was scored within countries."""

from pathlib import Path

from culturekit.metrics.scoring.score_gaps import GapOptions
from culturekit.pipeline.cube.run import CubeRun
from culturekit.pipeline.scores.country_groups import country_groups
from culturekit.pipeline.scores.gap_stage import gap_stage
from culturekit.pipeline.stage import Stage
from culturekit.report.stage_names import GAPS, WITHIN

__all__ = ["gap_stages"]


def gap_stages(run: CubeRun) -> list[Stage]:
    """Score the gaps of a scheme on the values within countries, where the recipe asks for it."""
    wanted = run.recipe.gaps
    if wanted is None:
        return []
    options = GapOptions(
        scheme=wanted.scheme,
        groups=country_groups(wanted.scheme, None if wanted.file is None else Path(wanted.file)),
        confidence=run.recipe.scores.confidence,
        seed=run.recipe.seed,
    )
    return [gap_stage([run.workdir / WITHIN / "values.parquet"], options, name=GAPS)]
