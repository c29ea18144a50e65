"""Two images of each local model of a recipe, so that its plan can say minutes."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from culturekit.config.kinds import AnyRecipe, wired
from culturekit.errors import UsageError
from culturekit.generation.runner import ImagePlan
from culturekit.pipeline.steps.generate_stage import run_pilot
from culturekit.records.work import Engine, Progress
from culturekit.stages.stage import Stage

__all__ = ["pilot_models"]


def pilot_models(
    recipe: AnyRecipe,
    workdir: Path,
    *,
    engine: Engine,
    progress: Progress,
    on_start: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Make two images of each model that has weights, where the run will find them; name the stages that had any left.

    Raises:
        UsageError: no such model is there, or its prompts are not built yet.
    """
    made = [step.stage for step in wired(recipe, workdir).steps if step.stage.kind == "generate"]
    stages = [stage for stage in made if "weights" in stage.options]
    if not stages:
        raise UsageError(
            "a pilot times models that run on this machine, and the recipe has none",
            found=", ".join(str(one.options["backend"]) for one in made if one.options["model"] in recipe.evaluated),
        )
    tried = []
    for stage in stages:
        prompts = stage.inputs["prompts"]
        if not prompts.is_file():
            raise UsageError(
                "a pilot needs the prompts, which are not built yet", where=str(prompts),
                hint="Run the recipe with --until prompts first.",
            )  # fmt: skip
        on_start(stage.name)
        out, seed = workdir / stage.name, stage.seeds["images"]
        if run_pilot(prompts, plan_of(stage), stage, out, seed=seed, engine=engine, progress=progress) is not None:
            tried.append(stage.name)
    return tried


def plan_of(stage: Stage) -> ImagePlan:
    """Read what a stage makes from its options."""
    return ImagePlan(**{field.name: stage.options[field.name] for field in fields(ImagePlan)})  # type: ignore[arg-type]
