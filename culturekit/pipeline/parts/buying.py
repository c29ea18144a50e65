"""How stages of a run buy answers and images, where several share a budget; the images that a model makes."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from culturekit.config.recipe_parts import Buying, Model
from culturekit.generation.runner import ImagePlan
from culturekit.llm.answers import LlmOptions
from culturekit.pipeline.planning.slots import Prompts, asks, makes, unknown
from culturekit.pipeline.steps.generate_stage import generate_stage
from culturekit.stages import roles
from culturekit.stages.planned import Slot
from culturekit.stages.roles import Role
from culturekit.stages.run import Run

__all__ = ["asked", "bought", "model_images"]


def bought(
    run: Run, buying: Buying, role: Role, model: str = "", variant: str = "", *, budget: str = "llm"
) -> LlmOptions:
    """Say how a stage buys; what the other stages of a budget of that name have spent is not there for it."""
    return replace(buying.options(), beside=run.sharing(budget, run.folder(role, model, variant)))


def asked(count: int | None, *, each: int = 1) -> Slot:
    """Plan a stage that asks about so many units, as far as that is known, so many times about each."""
    return asks() if count is None else asks(count=partial(int, count), requests=partial(int, count * each))


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
