"""Other encoders and channels map the same images: whether they rank the models alike."""

from culturekit.config.recipe_parts import Instrument
from culturekit.families.inputs import Files
from culturekit.families.qvs import QvsReads, qvs
from culturekit.families.stability import StabilityReads, stability
from culturekit.index.folder.build import IndexFiles, IndexOptions
from culturekit.index.matching.mapping_options import MappingInputs
from culturekit.pipeline.cube.run import CubeRun
from culturekit.pipeline.steps.index_stages import index_stage
from culturekit.pipeline.steps.map_stage import map_stage
from culturekit.stages.stage import Stage

__all__ = ["instrument_stages", "stability_of"]

MAIN = "main"
"""What the encoder that the scores are made with is called beside the others."""


def instrument_stages(run: CubeRun) -> list[Stage]:
    """Index, map and score with each of the other instruments."""
    return [stage for one in run.recipe.instruments for stage in stages_of(one, run)]


def stages_of(one: Instrument, run: CubeRun) -> list[Stage]:
    """Index, map and score with one of them; its folders carry its name."""
    recipe, workdir = run.recipe, run.workdir
    references = None if one.channel == "text" else run.references
    files = IndexFiles(run.space, references=references, prompts=run.reference_prompts if references else None)
    index = index_stage(files, IndexOptions(one.encoder, one.channel), name=f"index-{one.name}")
    folder = workdir / f"index-{one.name}"
    mapped = {name: f"matches-{name}-by-{one.name}" for name in run.names}
    maps = [
        map_stage(MappingInputs(folder, run.images(model), run.prompts), recipe.mapping, name=name)
        for model, name in mapped.items()
    ]
    matches = {name: workdir / name / "matches.parquet" for name in mapped.values()}
    return [index, *maps, qvs(QvsReads(Files(matches)), options=run.scoring, name=f"scores-by-{one.name}")]


def stability_of(run: CubeRun) -> list[Stage]:
    """Compare the rankings of all instruments, where there are several."""
    if not run.recipe.instruments:
        return []
    others = {one.name: run.workdir / f"scores-by-{one.name}/scores.parquet" for one in run.recipe.instruments}
    tables = Files({MAIN: run.workdir / "scores/scores.parquet", **others})
    return [stability(StabilityReads(tables), name="stability")]
