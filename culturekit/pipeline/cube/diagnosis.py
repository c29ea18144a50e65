"""A look at the instrument itself: a floor, a ceiling, and what held-out references say."""

from dataclasses import replace
from pathlib import Path

from culturekit.index.diagnosis.diagnosis import DiagnosisOptions
from culturekit.index.diagnosis.shuffled_pictures import SHUFFLED, ShuffleOptions
from culturekit.index.matching.mapping_options import MappingInputs
from culturekit.pipeline.cube.run import CubeRun
from culturekit.pipeline.steps.diagnosis_stages import diagnosis_stage, shuffle_stage
from culturekit.pipeline.steps.generate_stage import generate_stage
from culturekit.pipeline.steps.map_stage import map_stage
from culturekit.report.stage_names import CULTURE_FREE
from culturekit.stages.stage import Stage

__all__ = ["diagnosis_stages", "limits_of"]


def diagnosis_stages(run: CubeRun) -> list[Stage]:
    """Map pictures that show nothing, and look at the instrument itself."""
    recipe = run.recipe
    if recipe.diagnosis is None:
        return []
    repeats = min(recipe.diagnosis.floor_repeats, recipe.images.repeats)
    blank = generate_stage(
        run.prompts, replace(recipe.images, repeats=repeats), backend="simulated?noise=1", model=CULTURE_FREE,
        seed=recipe.seed, name=f"images-{CULTURE_FREE}", cspace=run.space,
    )  # fmt: skip
    first = run.images(run.names[0])
    mixed = shuffle_stage(first, ShuffleOptions(repeats=repeats), seed=recipe.seed, name=f"images-{SHUFFLED}")
    floors = [
        map_stage(MappingInputs(run.index, run.images(name), run.prompts), recipe.mapping, name=f"matches-{name}")
        for name in (CULTURE_FREE, SHUFFLED)
    ]
    options = DiagnosisOptions(recipe.scores.size, recipe.diagnosis.ceiling_repeats)
    looked_at = diagnosis_stage(run.index, run.all_matches(), recipe.mapping, options, seed=recipe.seed)
    return [blank, mixed, *floors, looked_at]


def limits_of(run: CubeRun) -> dict[str, Path]:
    """Name the matches that are floor and ceiling of the scores."""
    if run.recipe.diagnosis is None:
        return {}
    floors = {f"matches-{name}": run.matches(name) for name in (CULTURE_FREE, SHUFFLED)}
    return {**floors, "ceiling": run.workdir / "diagnosis/matches.parquet"}
