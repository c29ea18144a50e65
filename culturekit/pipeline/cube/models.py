"""Images of each model made, mapped and rated; before that, the references and the index made from them."""

from culturekit.config.checks import knows_truth
from culturekit.config.recipe import Model
from culturekit.generation.runner import ImagePlan
from culturekit.index.build import IndexFiles, IndexOptions
from culturekit.index.mapping_options import MappingInputs
from culturekit.pipeline.audit_stages import simulated_audit_stage
from culturekit.pipeline.cube.run import CubeRun
from culturekit.pipeline.generate_stage import generate_stage
from culturekit.pipeline.image_stages import quality_stage, truth_stage
from culturekit.pipeline.index_stages import index_stage
from culturekit.pipeline.map_stage import map_stage
from culturekit.pipeline.stage import Stage

__all__ = ["index_stages", "model_stages"]


def index_stages(run: CubeRun) -> list[Stage]:
    """Draw the references and build the index from them."""
    recipe = run.recipe
    references = generate_stage(
        run.prompts,
        ImagePlan(slots=recipe.references.per_artifact, kinds=("cube",)),
        backend=recipe.references.backend,
        model="references",
        seed=recipe.seed,
        name="references",
        cspace=run.space,
    )
    files = IndexFiles(run.space, references=run.references, prompts=run.prompts)
    return [references, index_stage(files, IndexOptions(recipe.encoder, "image"))]


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
