"""The images that a model makes for a run."""

from dataclasses import replace
from pathlib import Path

from culturekit.config.recipe_parts import Model
from culturekit.generation.runner import ImagePlan
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
    beside: tuple[Path, ...] = (),
) -> Path:
    """Have a model make images of the prompts of a run; give their table.

    `prompts` counts those of some kinds as far as it can be known before they are built. What was spent in folders
    `beside` is off the budget of the model.
    """
    asked, space, llm = (
        run.table(roles.PROMPTS),
        run.table(roles.CSPACE),
        replace(model.buying.options(), beside=beside),
    )
    backend = model.backend
    stage = generate_stage(asked, plan, backend=backend, model=model.name, seed=seed, cspace=space, llm=llm)
    return run.add(stage, role, model.name, plan=makes(plan, backend, seed=seed, prompts=prompts, batch=llm.batch))
