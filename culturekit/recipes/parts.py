"""Stages that several recipes share: images that a model makes of prompts, what is bought, answers to forms."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn

import polars as pl

from culturekit.builders.judging import question_graph
from culturekit.builders.judging.image_judge import vqascore
from culturekit.config.recipe_parts import Buying, Model
from culturekit.core import roles
from culturekit.core.errors import MissingDependency
from culturekit.core.inputs import Numbered
from culturekit.core.registry import parse_spec
from culturekit.core.roles import Role
from culturekit.core.run import Run
from culturekit.core.stage import Slot, Stage
from culturekit.generation.backend import FOLDER
from culturekit.generation.runner import ImagePlan
from culturekit.generation.stages.generate_stage import generate_stage
from culturekit.index.raters.quality import quality_stage
from culturekit.llm.answers import LlmOptions
from culturekit.people.answers import served_answers
from culturekit.people.stages import ANSWERS_FILE, import_stage
from culturekit.recipes.planning import Count, Prompts, asks, makes, unknown
from culturekit.scores.faithfulness import QuestionOptions, faithfulness

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


def deviations(stated: Any, published: Any, key: str = "") -> Iterator[str]:  # noqa: ANN401 - of JSON
    """Say where a recipe is not as published; a part that it leaves out deviates nowhere."""
    if isinstance(published, Mapping):
        for name, value in published.items() if stated is not None else ():
            yield from deviations(stated[name], value, f"{key}.{name}".lstrip("."))
    elif (list(published) if isinstance(published, tuple) else published) != stated:
        yield f"Not as published: {key} is {stated}, published {published}"


def bought(
    run: Run, buying: Buying, role: Role, model: str = "", variant: str = "", *, budget: str = "llm"
) -> LlmOptions:
    """Say how a stage buys; what the other stages of a budget of that name have spent is not there for it."""
    return replace(buying.options(), beside=run.sharing(budget, run.folder(role, model, variant)))


def add_asking(
    run: Run, buying: Buying, make: Callable[..., Stage], role: Role, model: str = "", variant: str = "", *,
    plan: Slot | None = None,
) -> Path:  # fmt: skip
    """Add a stage that asks a model; `make` takes how it buys as `llm`."""
    return run.add(make(llm=bought(run, buying, role, model, variant)), role, model, variant, plan=plan)


def asked(count: int | None, *, each: int = 1) -> Slot:
    """Plan a stage that asks about so many units, as far as that is known, so many times about each."""
    return asks() if count is None else asks(count=partial(int, count), requests=partial(int, count * each))


def model_images(
    run: Run, model: Model, plan: ImagePlan, role: Role = roles.IMAGES, *, seed: int, prompts: Prompts = unknown,
    asked: Path | None = None, variant: str = "",
) -> Path:  # fmt: skip
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
    exports = [Path(name) for name in given] or served_answers(project)
    if people is not None:
        exports = [run.add(people, answers, model, variant) / ANSWERS_FILE]
    return run.add(import_stage(project, exports, pool=None), imported, model, variant) if exports else None


@dataclass(frozen=True, slots=True)
class Looks:
    """Who looks at the images of a run and says how well they show their prompts, and at how many.

    Attributes:
        run: what the stages are added to.
        asking: says how the stage of a role and a model asks for words.
        prompts: counts the prompts whose images are looked at, as far as that can be known now.
        images: counts the images of a model that are looked at.
        questions: who writes questions about prompts, and `answers` who answers them.
        vqascore: who says how probable it is that an image shows its prompt, which is a share `of` what.
        scorers: what compares pictures and texts.
        per_prompt: how many images of a prompt are looked at.
        kinds: those of prompts; without any all.
    """

    run: Run
    asking: Callable[[Role, str], LlmOptions]
    prompts: Count
    images: Callable[[str], int | None]
    questions: str | None
    answers: str | None
    vqascore: str | None
    scorers: Sequence[str]
    per_prompt: int | None
    kinds: tuple[str, ...] = ()
    of: Literal["yes-no", "vocabulary"] = "yes-no"

    def write_questions(self) -> None:
        """Have prompts turned into questions."""
        if self.questions is not None:
            table, llm = self.run.table(roles.PROMPTS), self.asking(roles.QUESTIONS, "")
            writing = question_graph.build.stage(table, writer=self.questions, kinds=self.kinds, llm=llm)
            self.run.add(writing, roles.QUESTIONS, plan=asks(count=self.prompts, requests=self.prompts))

    def look_at(self, model: str) -> None:
        """Have the images of a model looked at: a request for each image and question, one for each image, or none."""
        run, limit, count = self.run, self.per_prompt, partial(self.images, model)
        images, prompts = run.table(roles.IMAGES, model), run.table(roles.PROMPTS)
        if self.answers is not None:
            asked, llm = run.table(roles.QUESTIONS), self.asking(roles.ANSWERS, model)
            stage = question_graph.answer.stage(images, asked, judge=self.answers, per_prompt=limit, llm=llm)
            run.add(stage, roles.ANSWERS, model, plan=asks(count=count, requests=partial(self._questions_of, model)))
        if self.vqascore is not None:
            llm = self.asking(roles.VQASCORE, model)
            stage = vqascore.stage(images, prompts, judge=self.vqascore, of=self.of, per_prompt=limit, llm=llm)
            run.add(stage, roles.VQASCORE, model, plan=asks(count=count, requests=count))
        for number, scorer in enumerate(self.scorers, start=1):
            run.add(quality_stage(images, prompts, scorer=scorer), roles.SCORER, model, str(number))

    def _questions_of(self, model: str) -> int | None:
        """Count the questions about the images of a model, once they are written."""
        asked, images, prompts = self.run.table(roles.QUESTIONS), self.images(model), self.prompts()
        if not asked.is_file() or not images or not prompts:
            return None
        return pl.read_parquet(asked, columns=["prompt_id"]).height * images // prompts

    def score(self, options: QuestionOptions) -> None:
        """Score what was said of the images of all models; the quality of each is a scorer beside the others."""
        run = self.run
        judged = {role.folder(model): run.table(role, model) for model in run.models
                  for role in (roles.ANSWERS, roles.VQASCORE) if run.has(role, model)}  # fmt: skip
        quality = {roles.QUALITY.folder(model): run.table(roles.QUALITY, model) for model in run.models
                   if run.has(roles.QUALITY, model)}  # fmt: skip
        quality |= {roles.SCORER.folder(model, number): run.table(roles.SCORER, model, number)
                    for model in run.models for number in run.variants(roles.SCORER, model)}  # fmt: skip
        if judged or quality:
            asked = run.table(roles.QUESTIONS) if run.has(roles.QUESTIONS) else None
            scoring = faithfulness.stage(Numbered(run.tables(roles.IMAGES)), Numbered(judged), asked, Numbered(quality),
                                         run.table(roles.PROMPTS), options=options)  # fmt: skip
            run.add(scoring, roles.FAITHFULNESS)
