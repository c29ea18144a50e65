"""The `cube` recipe as stages: from the dump to the report, one folder each."""

from collections.abc import Iterable
from pathlib import Path

from culturekit.config.kinds import RecipeKind
from culturekit.config.recipe import Recipe
from culturekit.pipeline.cube.images import diagnosis, index, instruments, models, tags
from culturekit.pipeline.cube.people import faithfulness, people
from culturekit.pipeline.cube.scores import country_gaps, diversity, realism, routes, stability, within
from culturekit.pipeline.cube.space import space
from culturekit.pipeline.named_metrics import named_metrics
from culturekit.pipeline.steps.report_stage import folders_of, report_stage
from culturekit.report.headline import headline_lines
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles
from culturekit.stages.run import Run

__all__ = ["CUBE"]

EVALUATION = (
    index, models, diagnosis, instruments, tags, diversity, routes, stability, faithfulness, realism, within,
    country_gaps, named_metrics, people,
)  # fmt: skip
"""The parts of a run that evaluates models, each after what it reads."""


def cube(recipe: Recipe, run: Run) -> None:
    """Add the stages of a run; without models it ends with release and prompts."""
    space(recipe, run)
    if recipe.models:
        for part in EVALUATION:
            part(recipe, run)
        run.add(report_stage(RunFolders(run.root, run.models, run.stages)), roles.REPORT)


def headline(root: Path) -> Iterable[str]:
    """Say how diverse what each model shows is, where the run has come so far."""
    return headline_lines(folders_of(root)) if (root / roles.SCORES.folder()).is_dir() else ()


CUBE = RecipeKind(Recipe, cube, headline)
