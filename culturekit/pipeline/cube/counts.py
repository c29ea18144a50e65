"""How many prompts and images a run has, as far as that can be known before it has them."""

from collections.abc import Sequence
from pathlib import Path

from culturekit.builders.prompting.prompt_templates import open_templates
from culturekit.builders.prompting.prompts import wordings_of
from culturekit.builders.space.imported_space import count_of_kinds
from culturekit.config.recipe import Recipe
from culturekit.generation.runner import ImagePlan
from culturekit.kg.concepts import load_concept
from culturekit.pipeline.planning.slots import Count
from culturekit.records.choices import PromptKind
from culturekit.stages import roles
from culturekit.stages.run import Run

__all__ = ["all_images", "known_prompts", "prompt_count"]


def known_prompts(recipe: Recipe, kinds: Sequence[PromptKind]) -> int | None:
    """Count the prompts of some kinds before they are built: those of a file, or of templates that alone decide."""
    if recipe.prompts.file is not None:
        return count_of_kinds(Path(recipe.prompts.file), kinds)
    if set(kinds) != {"underspecified"} or recipe.cspace is not None:
        return None
    concepts = [load_concept(name) for name in recipe.concepts]
    wordings = wordings_of(recipe.prompts.built(), concepts)
    return sum(len(open_templates(each.underspecified, one.concept)) for each in wordings for one in concepts)


def prompt_count(recipe: Recipe, run: Run, kinds: Sequence[PromptKind]) -> int | None:
    """Count the prompts of some kinds."""
    table = run.table(roles.PROMPTS)
    return count_of_kinds(table, kinds) if table.is_file() else known_prompts(recipe, kinds)


def all_images(recipe: Recipe, run: Run, plan: ImagePlan) -> Count:
    """Count the images that a model makes of its prompts."""

    def count() -> int | None:
        prompts = prompt_count(recipe, run, plan.kinds)
        return None if prompts is None else prompts * plan.repeats * plan.slots

    return count
