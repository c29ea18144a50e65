"""How far groups of countries are apart in what was scored within countries."""

from pathlib import Path

from culturekit.families.gaps import GapOptions, GapReads, gaps
from culturekit.families.inputs import ValueTables
from culturekit.pipeline.cube.run import CubeRun
from culturekit.report.stage_names import GAPS, WITHIN
from culturekit.stages.stage import Stage

__all__ = ["gap_stages"]


def gap_stages(run: CubeRun) -> list[Stage]:
    """Score the gaps of a scheme on the values within countries, where the recipe asks for it."""
    wanted = run.recipe.gaps
    if wanted is None:
        return []
    options = GapOptions(
        scheme=wanted.scheme,
        groups=None if wanted.file is None else Path(wanted.file),
        confidence=run.recipe.scores.confidence,
        seed=run.recipe.seed,
    )
    return [gaps(GapReads(ValueTables([run.workdir / WITHIN / "values.parquet"])), options, name=GAPS)]
