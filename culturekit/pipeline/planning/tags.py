"""What tagging would ask, and what that costs."""

from culturekit.llm.client import FreeClient
from culturekit.llm.clients.clients import CLIENTS
from culturekit.pipeline.cube.tags import sample_of
from culturekit.pipeline.planning.planned_stage import PlannedStage, ToPlan
from culturekit.pipeline.planning.work import prompt_count
from culturekit.pipeline.steps.tag_stage import plan_tag

__all__ = ["planned_tags"]


def planned_tags(plan: ToPlan) -> PlannedStage:
    """Plan the questions about images as soon as these are there; before that, at most how many there are."""
    stage, tags = plan.stage, plan.run.recipe.tags
    if tags is None:
        raise ValueError("a recipe without tags has no stage that tags")
    images, sample = stage.inputs["images"], sample_of(plan.run)
    if not plan.settled or not images.is_file():
        free = isinstance(CLIENTS.make(tags.judge), FreeClient)
        cost = (0, 0, 0.0) if free else (None, None, None)
        return PlannedStage(stage.name, plan.state, most_images(plan), "images", None, None, *cost)
    found = plan_tag(images, tags.judge, plan.run.workdir / stage.name, sample=sample, batch=tags.batch)
    if found.cost is None:
        return PlannedStage(stage.name, plan.state, found.images, "images")
    tokens = found.cost.input_tokens + found.cost.output_tokens
    left = found.cost.requests - found.cost.bought
    return PlannedStage(stage.name, plan.state, found.images, "images", None, None, left, tokens, found.cost.usd)


def most_images(plan: ToPlan) -> int | None:
    """Say how many images there are at most to ask about, where the prompts are known."""
    images, sample = plan.run.recipe.images, sample_of(plan.run)
    prompts = prompt_count(images.kinds, plan.run)
    if prompts is None:
        return None
    every = prompts * images.repeats * images.slots
    return every if sample is None else min(every, sample.images * len(plan.run.recipe.concepts))
