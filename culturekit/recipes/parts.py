"""Stages that several recipes share: images that a model makes of prompts, what is bought, answers to forms."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from culturekit.config.recipe_parts import Buying, Model
from culturekit.core import roles
from culturekit.core.errors import MissingDependency
from culturekit.core.registry import parse_spec
from culturekit.core.roles import Role
from culturekit.core.run import Run
from culturekit.core.stage import Slot, Stage
from culturekit.generation.folder.folder_backend import FOLDER
from culturekit.generation.runner import ImagePlan
from culturekit.generation.stages.generate_stage import generate_stage
from culturekit.llm.answers import LlmOptions
from culturekit.people.answers import served_answers
from culturekit.people.stages import ANSWERS_FILE, import_stage
from culturekit.recipes.planning import Prompts, asks, makes, unknown

SCENES = "simulated-scenes"  # The backend whose images come with what they show


def all_scenes(backends: Iterable[str]) -> bool:
    """Tell whether all images are simulated scenes, so that it is known what they show."""
    return all(parse_spec(backend).name == SCENES for backend in backends)


def with_published(given: Mapping[str, Any], published: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in what authors published, wherever a recipe does not say otherwise."""
    filled = dict(given)
    for name, value in published.items():
        if isinstance(value, Mapping) and isinstance(filled.get(name, {}), Mapping):
            filled[name] = {**value, **filled.get(name, {})}
        else:
            filled.setdefault(name, value)
    return filled


def deviations(stated: Any, published: Any, place: str = "") -> Iterator[str]:  # noqa: ANN401 - of JSON
    """Say where a recipe is not as published; a part that it leaves out deviates nowhere."""
    if isinstance(published, Mapping):
        for name, value in published.items() if stated is not None else ():
            yield from deviations(stated[name], value, f"{place}.{name}".lstrip("."))
    elif (list(published) if isinstance(published, tuple) else published) != stated:
        yield f"Not as published: {place} is {stated}, published {published}"


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
    variant: str = "",
) -> Path:
    """Have a model make images of the prompts of a run, or of those `asked`; all of a model share its budget.

    `prompts` counts those of some kinds as far as it can be known before they are built.
    """
    asked, backend = asked or run.table(roles.PROMPTS), model.backend
    space = run.table(roles.CSPACE) if run.has(roles.CSPACE) else None
    llm = bought(run, model.buying, role, model.name, variant, budget=f"images of {model.name}")
    parsed = parse_spec(backend)
    if parsed.name == FOLDER and not Path(parsed.target).expanduser().is_dir():
        return run.add(_awaited_pictures(asked, plan, backend), role, model.name, variant, plan=makes(prompts))
    stage = generate_stage(asked, plan, backend=backend, model=model.name, seed=seed, cspace=space, llm=llm)
    return run.add(stage, role, model.name, variant, plan=makes(prompts))


def _awaited_pictures(prompts: Path, plan: ImagePlan, backend: str) -> Stage:
    """Stand for a folder of pictures that is still to be gathered, so that a run can be planned before it is there."""

    def missing(*_: object) -> NoReturn:
        raise MissingDependency(
            "there is no such folder of images", where=backend, expected="folder:DIR, a folder that is there",
            hint="`culturekit references collect` gathers openly licensed photographs of the prompts.",
        )  # fmt: skip

    options = {**plan.options, "backend": backend}
    return Stage("images", "generate", 2, missing, {"prompts": prompts}, options, before=missing)


def imported_answers(
    run: Run, project: Path, given: Sequence[str], people: Stage | None, *, answers: Role, imported: Role,
    model: str = "", variant: str = "",
) -> Path | None:  # fmt: skip
    """Import what people said of a form; None while nobody has. Simulated `people` answer in a stage of their own."""
    said = [Path(name) for name in given] or served_answers(project)
    if people is not None:
        said = [run.add(people, answers, model, variant) / ANSWERS_FILE]
    return run.add(import_stage(project, said, pool=None), imported, model, variant) if said else None
