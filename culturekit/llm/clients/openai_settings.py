"""What follows for a request in OpenAI's protocol from the model, its address and the SPEC."""

import re
from dataclasses import dataclass
from typing import Any

from culturekit.llm.client import Request
from culturekit.llm.clients.client_options import Dialect, OpenAIOptions
from culturekit.llm.endpoints import OPENAI

THINKS = re.compile(r"(?:ft:)?(?:o\d|gpt-(?:[5-9]|\d\d)(?!.*-chat))")
SAMPLES = re.compile(r"(?:ft:)?(?:gpt-[34]|chatgpt-4|gpt-[5-9].*-chat)")
ROOM_TO_THINK = 4096


@dataclass(frozen=True, slots=True)
class Settings:
    """How the requests of one client look.

    `room` is how many tokens may be spent on thinking, on top of those of the answer.
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
    """
    official = OPENAI.owns(base_url)
    thinks = official and THINKS.match(model) is not None
    samples = not official or SAMPLES.match(model) is not None
    room = options.thinking_budget
    if room is None:
        room = ROOM_TO_THINK if thinks and options.reasoning_effort != "none" else 0
    temperature = options.temperature
    if temperature is None and samples:
        temperature = 0.0
    return Settings(
        model,
        options.schema or "openai",
        options.max_tokens_field or ("max_completion_tokens" if official else "max_tokens"),
        temperature,
        options.top_p,
        options.seed,
        options.reasoning_effort or "",
        options.detail or "",
        options.max_tokens,
        room,
    )
