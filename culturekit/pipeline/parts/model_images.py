"""The images that a model makes for a run."""

from pathlib import Path

from culturekit.config.recipe_parts import Model
from culturekit.generation.runner import ImagePlan
from culturekit.pipeline.parts.buying import bought
from culturekit.pipeline.planning.slots import Prompts, makes, unknown
from culturekit.pipeline.steps.generate_stage import generate_stage
from culturekit.stages import roles
from culturekit.stages.roles import Role
from culturekit.stages.run import Run

__all__ = ["model_images"]


def model_images(
    run: Run,
    model: Model,
    plan: ImagePlan,
    role: Role = roles.IMAGES,
    *,
    seed: int,
    prompts: Prompts = unknown,
    asked: Path | None = None,
) -> Path:
    """Have a model make images of the prompts of a run, or of those `asked`; all of a model share its budget.

    `prompts` counts those of some kinds as far as it can be known before they are built.
    """
    asked, backend = asked or run.table(roles.PROMPTS), model.backend
    space = run.table(roles.CSPACE) if run.has(roles.CSPACE) else None
    llm = bought(run, model.buying, role, model.name, budget=f"images of {model.name}")
    stage = generate_stage(asked, plan, backend=backend, model=model.name, seed=seed, cspace=space, llm=llm)
    return run.add(stage, role, model.name, plan=makes(prompts))
