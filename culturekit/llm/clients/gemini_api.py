"""Google's generateContent on the wire: what is asked, and what the reply says."""

from typing import Any

from culturekit.llm.client import Image, Outgoing, Reply, Request, Stop, Usage
from culturekit.llm.clients.body_templates import BodyTemplates
from culturekit.llm.clients.gemini_settings import GeminiSettings
from culturekit.llm.clients.image_slots import encoded, filled, slot_of
from culturekit.llm.clients.token_listing import refuse_weighing
from culturekit.llm.cut_replies import how_cut
from culturekit.llm.money.counted_here import Counts, too_few, usage_of_text
from culturekit.llm.reading.json_values import decoded, record, records, text, why_no_object
from culturekit.llm.reading.schemas import schema_of
from culturekit.llm.untrusted.untrusted import user_message

__all__ = ["compose", "read", "wire"]

GARBLED = {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"}


def compose(request: Request, settings: GeminiSettings, templates: BodyTemplates) -> Outgoing:
    """Write a request."""
    refuse_weighing(request, "Google")
    limit = settings.limit(request)
    key = (request.instructions, request.schema_type, request.sample, limit, tuple(map(slot_of, request.images)))
    body = templates.body(key, user_message(request.data), lambda text: body_of(request, settings, text))
    return Outgoing(body, request.images, request.sample, limit)


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
