"""What follows for a request to Google from the model and the SPEC."""

import re
from dataclasses import dataclass
from typing import Any

from culturekit.llm.client import Request
from culturekit.llm.clients.client_options import GoogleOptions

__all__ = ["OFFICIAL", "GeminiSettings", "settings_of"]

OFFICIAL = "https://generativelanguage.googleapis.com"
THINKS_IF_LEFT = re.compile(r"gemini-2\.5-flash(?!.*(?:image|tts|live|audio))")
THINKS_ALWAYS = re.compile(r"gemini-(?:2\.5-pro|[3-9])(?!.*(?:image|tts|live|audio))")
ROOM_TO_THINK = 4096


@dataclass(frozen=True, slots=True)
class GeminiSettings:
    """How the requests of one client look.

    `room` is how many tokens may be spent on thinking, on top of those of the answer; `thinking` is what the model is
    told about it.
    """

    temperature: float | None = 0.0
    top_p: float | None = None
    seed: int | None = None
    thinking: tuple[tuple[str, int | str], ...] = ()
    media_resolution: str = ""
    max_tokens: int | None = None
    room: int = 0

    def limit(self, request: Request) -> int:
        """Say how many tokens may come back."""
        return (self.max_tokens or request.max_tokens) + self.room

    def generation(self, sample: int) -> dict[str, Any]:
        """Say how tokens are drawn; samples of one question are drawn from different seeds."""
        chosen: dict[str, Any] = {
            "temperature": self.temperature,
            "topP": self.top_p,
            "seed": None if self.seed is None else self.seed + sample,
            "thinkingConfig": dict(self.thinking) or None,
            "mediaResolution": f"MEDIA_RESOLUTION_{self.media_resolution.upper()}" if self.media_resolution else None,
        }
        return {name: value for name, value in chosen.items() if value is not None}


def settings_of(model: str, options: GoogleOptions) -> GeminiSettings:
    """Choose what the SPEC leaves open.

    Thoughts count as output and would eat the tokens of the answer: models that can do without them are asked not to
    think, the others get room for it.
    """
    name = model.removeprefix("models/")
    budget, level = options.thinking_budget, options.thinking_level
    if budget is None and level is None and THINKS_IF_LEFT.match(name):
        budget = 0
    thinks = level is not None or THINKS_ALWAYS.match(name) is not None
    thinking: list[tuple[str, int | str]] = [] if level is None else [("thinkingLevel", level)]
    if budget is not None and level is None:
        thinking.append(("thinkingBudget", budget))
    return GeminiSettings(
        0.0 if options.temperature is None else options.temperature,
        options.top_p,
        options.seed,
        tuple(thinking),
        options.media_resolution or "",
        options.max_tokens,
        budget if budget is not None else ROOM_TO_THINK if thinks else 0,
    )
