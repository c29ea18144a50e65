"""How many prompts, images and references a run has, as far as that can be known before it has them."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from culturekit.builders.prompting.prompt_templates import open_templates
from culturekit.builders.prompting.prompts import wordings_of
from culturekit.builders.space.imported_space import count_of_kinds
from culturekit.config.recipe import Recipe
from culturekit.config.recipe_parts import References
from culturekit.generation.folder.folder_listing import list_folder
from culturekit.generation.folder.folder_options import FOLDER, folder_of
from culturekit.generation.runner import ImagePlan
from culturekit.kg.concepts import load_concept
from culturekit.pipeline.planning.slots import Count
from culturekit.registry import parse_spec
from culturekit.stages import roles
from culturekit.stages.run import Run

__all__ = ["all_images", "prompt_count", "reference_count"]


def prompt_count(recipe: Recipe, run: Run, kinds: Sequence[str]) -> int | None:
    """Count the prompts of some kinds: from the table, or from the templates where they alone decide."""
    table = run.table(roles.PROMPTS)
    if table.is_file():
        return pl.read_parquet(table, columns=["kind"]).filter(pl.col("kind").is_in(list(kinds))).height
    if recipe.prompts.file is not None:
        return count_of_kinds(Path(recipe.prompts.file), kinds)
    if set(kinds) != {"underspecified"} or recipe.cspace is not None:
        return None
    concepts = [load_concept(name) for name in recipe.concepts]
    wordings = wordings_of(recipe.prompts.built(), concepts)
    return sum(len(open_templates(each.underspecified, one.concept)) for each in wordings for one in concepts)


def all_images(recipe: Recipe, run: Run, plan: ImagePlan) -> Count:
    """Count the images that a model makes of its prompts."""

    def count() -> int | None:
        prompts = prompt_count(recipe, run, plan.kinds)
        return None if prompts is None else prompts * plan.repeats * plan.slots

    return count


def reference_count(recipe: Recipe, run: Run, references: References) -> Count:
    """Count the pictures of artifacts: those of a folder, or so many of each."""
    spec = parse_spec(references.backend)

    def count() -> int | None:
        if spec.name == FOLDER and not references.counted:
            return len(list_folder(folder_of(spec)).pictures)
        if not recipe.names_artifacts:
            prompts = prompt_count(recipe, run, ("cube",))
        else:
            table = run.table(roles.REFERENCE_PROMPTS)
            prompts = pl.scan_parquet(table).select(pl.len()).collect().item() if table.is_file() else None
        return None if prompts is None else prompts * references.per_artifact

    return count
