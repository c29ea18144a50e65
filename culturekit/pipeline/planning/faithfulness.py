"""What the stages about faithfulness would ask, and what that costs."""

from collections.abc import Callable

import polars as pl

from culturekit.config.faithfulness import Faithfulness
from culturekit.llm.client import FreeClient
from culturekit.llm.clients.clients import CLIENTS
from culturekit.pipeline.planning.planned_stage import PlannedStage, ToPlan
from culturekit.pipeline.planning.work import prompt_count
from culturekit.pipeline.steps.question_stages import AskPlan, plan_answers, plan_graphs
from culturekit.pipeline.steps.vqascore_stage import plan_vqascore

__all__ = ["planned_answers", "planned_graphs", "planned_vqascore"]


def planned_graphs(plan: ToPlan) -> PlannedStage:
    """Plan the questions of the prompts: one request each."""
    recipe, wanted = plan.run.recipe, asked_of(plan)
    prompts = prompt_count(recipe.images.kinds, plan.run)

    def exact() -> AskPlan:
        out = plan.run.workdir / plan.stage.name
        kinds, batch = recipe.images.kinds, recipe.llm.batch
        return plan_graphs(plan.stage.inputs["prompts"], wanted.questions or "", out, kinds=kinds, batch=batch)

    return planned(plan, wanted.questions, exact, units=prompts, unit="prompts", requests=prompts)


def planned_answers(plan: ToPlan) -> PlannedStage:
    """Plan the answers: a request for each image and question, as soon as the questions are there."""
    wanted, images = asked_of(plan), images_of(plan)
    questions, requests = plan.stage.inputs["questions"], None
    if questions.is_file() and images is not None:
        table = pl.read_parquet(questions, columns=["prompt_id"])
        requests = table.height * images_of_prompt(plan)

    def exact() -> AskPlan:
        batch = plan.run.recipe.llm.batch
        out, per_prompt = plan.run.workdir / plan.stage.name, wanted.per_prompt
        pictures = plan.stage.inputs["images"]
        return plan_answers(pictures, questions, wanted.answers or "", out, per_prompt=per_prompt, batch=batch)

    return planned(plan, wanted.answers, exact, units=images, unit="images", requests=requests)


def planned_vqascore(plan: ToPlan) -> PlannedStage:
    """Plan the probabilities of yes: one request for each image."""
    wanted, images = asked_of(plan), images_of(plan)

    def exact() -> AskPlan:
        inputs, per_prompt, batch = plan.stage.inputs, wanted.per_prompt, plan.run.recipe.llm.batch
        out = plan.run.workdir / plan.stage.name
        return plan_vqascore(
            inputs["images"], wanted.vqascore or "", out, prompts=inputs["prompts"], per_prompt=per_prompt, batch=batch
        )

    return planned(plan, wanted.vqascore, exact, units=images, unit="images", requests=images)


def planned(
    plan: ToPlan, spec: str | None, exact: Callable[[], AskPlan], *, units: int | None, unit: str, requests: int | None
) -> PlannedStage:
    """Plan by what is there, in every detail; before that by numbers alone, without tokens and dollars."""
    name, state = plan.stage.name, plan.state
    free = spec is not None and isinstance(CLIENTS.make(spec), FreeClient)
    if free or not plan.settled or not all(path.exists() for path in plan.stage.inputs.values()):
        cost: tuple[int | None, int | None, float | None] = (0, 0, 0.0) if free else (requests, None, None)
        return PlannedStage(name, state, units, unit, None, None, *cost)
    found = exact()
    if found.cost is None:
        return PlannedStage(name, state, found.units, unit, None, None, 0, 0, 0.0)
    tokens = found.cost.input_tokens + found.cost.output_tokens
    left = found.cost.requests - found.cost.bought
    return PlannedStage(name, state, found.units, unit, None, None, left, tokens, found.cost.usd)


def asked_of(plan: ToPlan) -> Faithfulness:
    """Give what the recipe asks for."""
    return plan.run.recipe.faithfulness or Faithfulness(scorers=("embedded",))


def images_of(plan: ToPlan) -> int | None:
    """Count the images of a model that are looked at."""
    prompts = prompt_count(plan.run.recipe.images.kinds, plan.run)
    return None if prompts is None else prompts * images_of_prompt(plan)


def images_of_prompt(plan: ToPlan) -> int:
    """Count the images of a model and prompt that are looked at."""
    made = plan.run.recipe.images.repeats * plan.run.recipe.images.slots
    limit = asked_of(plan).per_prompt
    return made if limit is None else min(made, limit)
