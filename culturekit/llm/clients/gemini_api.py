"""Google's generateContent on the wire: what follows from the SPEC, what is asked, and what the reply says."""

from dataclasses import dataclass
from typing import Any

from culturekit.llm.client import Image, Outgoing, Reply, Request, Stop, Usage, how_cut
from culturekit.llm.clients.client_options import GoogleOptions
from culturekit.llm.clients.image_slots import BodyTemplates, encoded, filled, slot_of
from culturekit.llm.json_values import decoded, record, records, text, why_no_object
from culturekit.llm.models import habits_of
from culturekit.llm.reply_schema import schema_of
from culturekit.llm.rows import refuse_weighing
from culturekit.llm.usage import Counts, too_few, usage_of_text

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
    think, the others get room for it. From Gemini 3.6 on the provider takes no sampling of its own accord: nothing is
    sent of it that the SPEC does not state.
    """
    habits = habits_of(model, "google")
    budget, level = options.thinking_budget, options.thinking_level
    if budget is None and level is None and habits.stops_thinking:
        budget = 0
    thinks = level is not None or habits.thinks
    thinking: list[tuple[str, int | str]] = [] if level is None else [("thinkingLevel", level)]
    if budget is not None and level is None:
        thinking.append(("thinkingBudget", budget))
    return GeminiSettings(
        0.0 if options.temperature is None and habits.samples else options.temperature,
        options.top_p,
        options.seed,
        tuple(thinking),
        options.media_resolution or "",
        options.max_tokens,
        budget if budget is not None else ROOM_TO_THINK if thinks else 0,
    )


GARBLED = {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"}


def compose(request: Request, settings: GeminiSettings, templates: BodyTemplates) -> Outgoing:
    """Write a request."""
    refuse_weighing(request, "Google")
    return templates.outgoing(request, settings.limit(request), lambda text: body_of(request, settings, text))


def body_of(request: Request, settings: GeminiSettings, data: str) -> dict[str, Any]:
    """Write the body around what comes from outside."""
    slots = [{"inlineData": {"mimeType": image.media_type, "data": slot_of(image)}} for image in request.images]
    return {
        "systemInstruction": {"parts": [{"text": request.instructions}]},
        "contents": [{"role": "user", "parts": [{"text": data}, *slots]}],
        "generationConfig": {
            "responseMimeType": "application/json",
            "responseJsonSchema": schema_of(request.schema_type, "google-json"),
            "maxOutputTokens": settings.limit(request),
            **settings.generation(request.sample),
        },
    }


def wire(outgoing: Outgoing) -> bytes:
    """Write the bytes that leave."""
    return filled(outgoing, fill)


def fill(body: Any, images: dict[str, Image]) -> int:  # noqa: ANN401 - JSON of our own
    """Put the images where their names stand."""
    slots = [part["inlineData"] for part in body["contents"][0]["parts"] if "inlineData" in part]
    for slot in slots:
        slot["data"] = encoded(images[slot["data"]])
    return len(slots)


def read(raw: bytes) -> Reply:
    """Read a reply; what a filter stopped looks like any other until one asks why it ended."""
    body = record(decoded(raw))
    version = text(body.get("modelVersion"))
    feedback = record(body.get("promptFeedback"))
    blocked = text(feedback.get("blockReason"))
    if blocked and blocked != "BLOCK_REASON_UNSPECIFIED":
        return Reply("", usage(body.get("usageMetadata"), ""), "blocked", f"prompt: {blocked}", version)
    candidates = records(body.get("candidates"))
    if not candidates:
        nothing = "no candidates in the reply" if body else why_no_object(raw)
        return Reply("", usage(body.get("usageMetadata"), ""), "unreadable", nothing, version)
    parts = records(record(candidates[0].get("content")).get("parts"))
    said = "".join(text(part.get("text")) for part in parts if part.get("thought") is not True)
    stop, detail = ending(text(candidates[0].get("finishReason")), said)
    return Reply(said, usage(body.get("usageMetadata"), said), stop, detail, version)


def ending(reason: str, said: str) -> tuple[Stop, str]:
    """Tell why a reply ended; reasons that are not known are taken for a filter's."""
    if reason in ("", "FINISH_REASON_UNSPECIFIED"):
        return ("end", "") if said else ("unreadable", "nothing was said, and no reason given")
    if reason == "STOP":
        return "end", ""
    if reason == "MAX_TOKENS":
        return "length", how_cut(said)
    if reason in GARBLED:
        return "unreadable", reason
    return "blocked", reason


def usage(value: object, said: str) -> Usage:
    """Read what the provider counted, thoughts as output; count here where it did not. It leaves out counts of none."""
    counts = Counts(value)
    if not {"promptTokenCount", "candidatesTokenCount", "totalTokenCount"} & counts.stated.keys():
        return usage_of_text(said)
    prompt, tools = counts.take("promptTokenCount"), counts.take("toolUsePromptTokenCount") or 0
    thought = counts.take("thoughtsTokenCount") or 0
    answer = counts.take("candidatesTokenCount") if counts.stated.get("candidatesTokenCount") is not None else 0
    return counts.usage(
        said,
        sent=None if prompt is None else prompt + tools,
        came=None if answer is None or too_few(answer, said) else answer + thought,
        thought=thought,
        cached=counts.take("cachedContentTokenCount") or 0,
        total=counts.take("totalTokenCount"),
    )
