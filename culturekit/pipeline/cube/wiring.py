"""The `cube` recipe as stages: from the dump to the report, one folder each."""

from collections.abc import Iterable

from culturekit.config.kinds import RecipeKind
from culturekit.config.recipe import Recipe
from culturekit.families.named_in_recipe import bound_stage
from culturekit.pipeline.cube import images, scores, space
from culturekit.pipeline.served_audit import with_answers
from culturekit.pipeline.steps.report_stage import report_stage
from culturekit.report.headline import headline_lines
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles
from culturekit.stages.run import Run

__all__ = ["CUBE"]


def wire_metrics(recipe: Recipe, run: Run) -> None:
    """Add a stage for every family; what it reads are tables of the run, by the names of its fields."""
    tables = {
        "images": run.tables(roles.IMAGES),
        "matches": run.tables(roles.MATCHES),
        "prompts": {"prompts": run.table(roles.PROMPTS)},
        "quality": run.tables(roles.QUALITY),
        "values": {"values-0": run.values_of(roles.SCORES)},
    }
    for name, stated in recipe.metrics.items():
        run.add(bound_stage(name, stated, tables, seed=recipe.seed), roles.METRIC, variant=name)


EVALUATION = (
    images.wire_index,
    images.wire_models,
    images.wire_diagnosis,
    images.wire_instruments,
    images.wire_tags,
    scores.wire_diversity,
    scores.wire_routes,
    scores.wire_stability,
    scores.wire_faithfulness,
    scores.wire_realism,
    images.wire_within_images,
    scores.wire_within,
    scores.wire_gaps,
    wire_metrics,
    scores.wire_people,
)
"""The parts of a run that evaluates models, each after what it reads."""


def cube(recipe: Recipe, run: Run) -> None:
    """Add the stages of a run; without models it ends with release and prompts."""
    space.wire_space(recipe, run)
    if recipe.models:
        recipe = with_answers(recipe, run)
        for part in EVALUATION:
            part(recipe, run)
        run.add(report_stage(RunFolders(run.root, run.models, run.stages)), roles.REPORT)


def headline(run: Run) -> Iterable[str]:
    """Say how diverse what each model shows is, where the run has come so far."""
    return headline_lines(RunFolders(run.root, run.models, run.stages)) if run.has(roles.SCORES) else ()


CUBE = RecipeKind(Recipe, cube, headline)
