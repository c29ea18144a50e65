"""Images of each model made, mapped and rated."""

from culturekit.config.checks import knows_truth
from culturekit.config.recipe_parts import Model
from culturekit.index.matching.mapping_options import MappingInputs
from culturekit.pipeline.cube.run import CubeRun
from culturekit.pipeline.steps.audit_stages import simulated_audit_stage
from culturekit.pipeline.steps.generate_stage import generate_stage
from culturekit.pipeline.steps.image_stages import quality_stage, truth_stage
from culturekit.pipeline.steps.map_stage import map_stage
from culturekit.stages.stage import Stage

__all__ = ["model_stages"]


def model_stages(run: CubeRun, model: Model) -> list[Stage]:
    """Make, map and rate the images of one model; folders carry its name."""
    recipe, name, images = run.recipe, model.name, run.images(model.name)
    stages = [
        generate_stage(
            run.prompts, recipe.images, backend=model.backend, model=name, seed=recipe.seed, name=f"images-{name}",
            cspace=run.space, llm=model.buying.options(),
        ),
        map_stage(MappingInputs(run.index, images, run.prompts), recipe.mapping, name=f"matches-{name}"),
        quality_stage(images, scorer=recipe.quality, name=f"quality-{name}"),
    ]  # fmt: skip
    if knows_truth(model.backend):
        stages.append(truth_stage(images, run.space, name=f"truth-{name}"))
    if recipe.audit is not None and recipe.audit.file is None:
        raters = (run.matches(name), run.truth(name), run.space, recipe.audit)
        stages.append(simulated_audit_stage(*raters, seed=recipe.seed, name=f"audit-{name}"))
    return stages
