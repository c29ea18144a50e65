"""Other encoders and channels map the same images: whether they rank the models alike."""

from pathlib import Path

from culturekit.config.recipe import Instrument, Recipe
from culturekit.index.build import IndexFiles, IndexOptions
from culturekit.index.mapping_options import MappingInputs
from culturekit.pipeline.index_stages import index_stage
from culturekit.pipeline.map_stage import map_stage
from culturekit.pipeline.qvs_stage import score_stage
from culturekit.pipeline.scores.stability_stage import stability_stage
from culturekit.pipeline.stage import Stage

__all__ = ["instrument_stages", "stability_of"]

MAIN = "main"
"""What the encoder that the scores are made with is called beside the others."""


def instrument_stages(recipe: Recipe, workdir: Path) -> list[Stage]:
    """Index, map and score with each of the other instruments."""
    return [stage for one in recipe.instruments for stage in stages_of(one, recipe, workdir)]


def stages_of(one: Instrument, recipe: Recipe, workdir: Path) -> list[Stage]:
    """Index, map and score with one of them; its folders carry its name."""
    space, prompts = workdir / "cspace/cspace.parquet", workdir / "prompts/prompts.parquet"
    references = None if one.channel == "text" else workdir / "references/images.parquet"
    files = IndexFiles(space, references=references, prompts=prompts if references else None)
    index = index_stage(files, IndexOptions(one.encoder, one.channel), name=f"index-{one.name}")
    folder = workdir / f"index-{one.name}"
    mapped = {model.name: f"matches-{model.name}-by-{one.name}" for model in recipe.models}
    maps = [
        map_stage(MappingInputs(folder, workdir / f"images-{model}/images.parquet", prompts), recipe.mapping, name=name)
        for model, name in mapped.items()
    ]
    matches = {name: workdir / name / "matches.parquet" for name in mapped.values()}
    return [index, *maps, score_stage(matches, {}, recipe.scores, name=f"scores-by-{one.name}")]


def stability_of(recipe: Recipe, workdir: Path) -> list[Stage]:
    """Compare the rankings of all instruments, where there are several."""
    if not recipe.instruments:
        return []
    others = {one.name: workdir / f"scores-by-{one.name}/scores.parquet" for one in recipe.instruments}
    return [stability_stage({MAIN: workdir / "scores/scores.parquet", **others}, name="stability")]
