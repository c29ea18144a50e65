"""How stages of a run buy answers and images, where several share a budget."""

from dataclasses import replace
from functools import partial

from culturekit.config.recipe_parts import Buying
from culturekit.llm.answers import LlmOptions
from culturekit.pipeline.planning.slots import asks
from culturekit.stages.planned import Slot
from culturekit.stages.roles import Role
from culturekit.stages.run import Run

__all__ = ["asked", "bought"]


def bought(
    run: Run, buying: Buying, role: Role, model: str = "", variant: str = "", *, budget: str = "llm"
) -> LlmOptions:
    """Say how a stage buys; what the other stages of a budget of that name have spent is not there for it."""
    return replace(buying.options(), beside=run.sharing(budget, run.folder(role, model, variant)))


def asked(count: int | None, *, each: int = 1) -> Slot:
    """Plan a stage that asks about so many units, as far as that is known, so many times about each."""
    return asks() if count is None else asks(count=partial(int, count), requests=partial(int, count * each))
