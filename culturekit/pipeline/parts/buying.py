"""How stages of a run buy answers and images, where several share a budget."""

from dataclasses import replace

from culturekit.config.recipe_parts import Buying
from culturekit.llm.answers import LlmOptions
from culturekit.stages.roles import Role
from culturekit.stages.run import Run

__all__ = ["bought"]


def bought(run: Run, buying: Buying, role: Role, model: str = "", *, budget: str = "llm") -> LlmOptions:
    """Say how a stage buys; what the other stages of a budget of that name have spent is not there for it."""
    return replace(buying.options(), beside=run.sharing(budget, run.folder(role, model)))
