"""What the stages that ask a language model would ask, and what that costs."""

from culturekit.llm.client import FreeClient
from culturekit.llm.clients.clients import CLIENTS
from culturekit.pipeline.cube.space import completion_run, filter_run
from culturekit.pipeline.planning.planned_stage import PlannedStage, ToPlan

__all__ = ["planned_completion", "planned_filter"]


def planned_filter(plan: ToPlan) -> PlannedStage:
    """Plan the judge's questions, as soon as its candidates are there."""
    stage = plan.stage
    if not plan.settled or not stage.inputs["candidates"].is_file():
        free = isinstance(CLIENTS.make(plan.run.recipe.judge), FreeClient)
        cost = (0, 0, 0.0) if free else (None, None, None)
        return PlannedStage(stage.name, plan.state, None, "candidates", None, None, *cost)
    found = filter_run(plan.run).plan()
    tokens = found.cost.input_tokens + found.cost.output_tokens
    left = found.cost.requests - found.cost.bought
    return PlannedStage(
        stage.name, plan.state, found.candidates, "candidates", None, None, left, tokens, found.cost.usd
    )


def planned_completion(plan: ToPlan) -> PlannedStage:
    """Plan the completion: the most that its rounds can ask, also before the names that go along are known."""
    found = completion_run(plan.run).plan()
    return PlannedStage(
        plan.stage.name, plan.state, found.cells, "pairs", None, None, found.requests, found.tokens, found.usd
    )
