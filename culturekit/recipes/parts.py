"""Stages that several recipes share: images that a model makes of prompts, what is bought, answers to forms."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from culturekit.config.recipe_parts import Buying, Model
from culturekit.core import roles
from culturekit.core.registry import parse_spec
from culturekit.core.roles import Role
from culturekit.core.run import Run
from culturekit.core.stage import Slot, Stage
from culturekit.generation.runner import ImagePlan
from culturekit.generation.stages.generate_stage import generate_stage
from culturekit.llm.answers import LlmOptions
from culturekit.people.answers import served_answers
from culturekit.people.stages import ANSWERS_FILE, import_stage
from culturekit.recipes.planning import Prompts, asks, makes, unknown

SCENES = "simulated-scenes"
"""The backend whose images come with what they show."""


def all_scenes(backends: Iterable[str]) -> bool:
    """Tell whether all images are simulated scenes, so that it is known what they show."""
    return all(parse_spec(backend).name == SCENES for backend in backends)


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


def imported_answers(
    run: Run, project: Path, given: Sequence[str], people: Stage | None, *, answers: Role, imported: Role,
    model: str = "", variant: str = "",
) -> Path | None:  # fmt: skip
    """Import what people said of a form; None while nobody has. Simulated `people` answer in a stage of their own."""
    said = [Path(name) for name in given] or served_answers(project)
    if people is not None:
        said = [run.add(people, answers, model, variant) / ANSWERS_FILE]
    return run.add(import_stage(project, said, pool=None), imported, model, variant) if said else None
