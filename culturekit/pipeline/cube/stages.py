"""The `cube` recipe as stages: from the dump to the report, one folder each."""

from pathlib import Path

from culturekit.config.recipe import Recipe
from culturekit.pipeline.cube.diagnosis import diagnosis_stages
from culturekit.pipeline.cube.faithfulness import faithfulness_stages
from culturekit.pipeline.cube.gaps import gap_stages
from culturekit.pipeline.cube.index import index_stages
from culturekit.pipeline.cube.instruments import instrument_stages, stability_of
from culturekit.pipeline.cube.models import model_stages
from culturekit.pipeline.cube.people import people_stages
from culturekit.pipeline.cube.realism import realism_stages
from culturekit.pipeline.cube.run import CubeRun
from culturekit.pipeline.cube.scores import score_stages
from culturekit.pipeline.cube.space import space_stages
from culturekit.pipeline.cube.tags import routes_of, tag_stages
from culturekit.pipeline.cube.within import within_stages
from culturekit.pipeline.steps.report_stage import report_stage
from culturekit.report.run_folders import RunFolders
from culturekit.stages.stage import Stage

__all__ = ["cube_stages"]


def cube_stages(recipe: Recipe, workdir: Path) -> list[Stage]:
    """List the stages of a run, each after what it reads; without models it ends with release and prompts."""
    run = CubeRun(recipe, workdir)
    if not recipe.models:
        return space_stages(run)
    stages = [
        *space_stages(run),
        *index_stages(run),
        *(stage for model in recipe.models for stage in model_stages(run, model)),
        *diagnosis_stages(run),
        *instrument_stages(run),
        *tag_stages(run),
        *score_stages(run),
        *routes_of(run),
        *stability_of(run),
        *faithfulness_stages(run),
        *realism_stages(run),
        *within_stages(run),
        *gap_stages(run),
        *people_stages(run),
    ]
    return [*stages, report_stage(RunFolders(workdir, run.names, tuple(stage.name for stage in stages)))]
