"""What follows for a request in OpenAI's protocol from the model, its address and the SPEC."""

from dataclasses import dataclass
from typing import Any

from culturekit.core.errors import UsageError
from culturekit.llm.client import Request
from culturekit.llm.clients.client_options import Dialect, OpenAIOptions
from culturekit.llm.endpoints import OPENAI
from culturekit.llm.models import Habits, habits_of

ROOM_TO_THINK = 4096


@dataclass(frozen=True, slots=True)
class Settings:
    """How the requests of one client look.

    `room` is how many tokens may be spent on thinking, on top of those of the answer. `weighs` is False for a model
    that is known to give no probabilities of tokens as it is asked here.
    """

    model: str
    dialect: Dialect
    limit_field: str
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    effort: str = ""
    detail: str = ""
    max_tokens: int | None = None
    room: int = 0
    weighs: bool = True

    def limit(self, request: Request) -> int:
        """Say how many tokens may come back."""
        return (self.max_tokens or request.max_tokens) + self.room

    def sampling(self, sample: int) -> dict[str, Any]:
        """Say how tokens are drawn; samples of one question are drawn from different seeds."""
        seed = None if self.seed is None else self.seed + sample
        chosen = {"temperature": self.temperature, "top_p": self.top_p, "seed": seed}
        return {name: value for name, value in chosen.items() if value is not None}


def settings_of(model: str, base_url: str, options: OpenAIOptions) -> Settings:
    """Choose what the SPEC leaves open.

    Models of OpenAI that think take no temperature and count their thoughts as output; a name that is not known is
    asked with nothing that it could refuse. Servers of one's own know `max_tokens` only.

    Raises:
        UsageError: the model is known not to take this effort.
    """
    official = OPENAI.owns(base_url)
    habits = habits_of(model, "openai") if official else Habits(samples=True)
    effort = options.reasoning_effort or ""
    if effort and habits.efforts and effort not in habits.efforts:
        raise UsageError(
            f"{model} does not think with this effort",
            expected=f"reasoning_effort as one of {', '.join(habits.efforts)}",
            found=effort,
            where="the SPEC of the model",
            hint=f"Write openai:{model}?reasoning_effort={habits.efforts[0]}, or leave it away.",
        )
    unthinking = effort == "none"
    room = options.thinking_budget
    if room is None:
        room = ROOM_TO_THINK if habits.thinks and not unthinking else 0
    temperature = options.temperature
    if temperature is None and habits.samples:
        temperature = 0.0
    return Settings(
        model,
        options.schema or "openai",
        options.max_tokens_field or ("max_completion_tokens" if official else "max_tokens"),
        temperature,
        options.top_p,
        options.seed,
        effort,
        options.detail or "",
        options.max_tokens,
        room,
        weighs=not room and (not habits.thinks or (habits.weighs_unthinking and unthinking)),
    )
