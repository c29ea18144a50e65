"""What the artifacts look like: the references, and the index made from them or from names."""

from culturekit.config.recipe_parts import References
from culturekit.generation.folder.folder_options import FOLDER
from culturekit.generation.runner import ImagePlan
from culturekit.index.folder.build import IndexFiles, IndexOptions
from culturekit.pipeline.cube.run import REFERENCE_PROMPTS, CubeRun
from culturekit.pipeline.steps.folder_stage import image_folder, stage_of
from culturekit.pipeline.steps.generate_stage import generate_stage
from culturekit.pipeline.steps.index_stages import index_stage
from culturekit.pipeline.steps.taken_stages import named_artifacts_stage
from culturekit.registry import parse_spec
from culturekit.stages.stage import Stage

__all__ = ["index_stages"]


def index_stages(run: CubeRun) -> list[Stage]:
    """Gather the references and build the index from them; without any, artifacts are known by their names."""
    recipe = run.recipe
    if recipe.references is None:
        return [index_stage(IndexFiles(run.space), IndexOptions(recipe.encoder, "text"))]
    named = [named_artifacts_stage(run.space, name=REFERENCE_PROMPTS)] if run.names_artifacts else []
    files = IndexFiles(run.space, references=run.references, prompts=run.reference_prompts)
    return [*named, references_of(run, recipe.references), index_stage(files, IndexOptions(recipe.encoder, "image"))]


def references_of(run: CubeRun, references: References) -> Stage:
    """Draw the pictures, or take those of a folder: as many as it has, unless the recipe says how many."""
    if parse_spec(references.backend).name == FOLDER and not references.counted:
        folder = image_folder(references.backend, run.reference_prompts, model="references", cspace=run.space)
        return stage_of(folder, name="references")
    return generate_stage(
        run.reference_prompts,
        ImagePlan(slots=references.per_artifact, kinds=("cube",)),
        backend=references.backend,
        model="references",
        seed=run.recipe.seed,
        name="references",
        cspace=run.space,
    )
