"""OpenAI's responses API on the wire: what is asked, and what the reply says."""

from typing import Any

from culturekit.llm.client import Image, Outgoing, Reply, Request, Stop, Usage, how_cut
from culturekit.llm.clients.image_slots import BodyTemplates, data_url, filled, slot_of
from culturekit.llm.clients.openai_settings import Settings
from culturekit.llm.failures import shortened
from culturekit.llm.json_values import decoded, record, records, text, why_no_object
from culturekit.llm.reply_schema import response_format
from culturekit.llm.rows import refuse_weighing
from culturekit.llm.usage import stated_usage

LEAST_TOKENS = 16


def compose(request: Request, settings: Settings, templates: BodyTemplates) -> Outgoing:
    """Write a request; nothing of it is to be stored by the provider."""
    refuse_weighing(request, "the responses API")
    limit = max(settings.limit(request), LEAST_TOKENS)
    return templates.outgoing(request, limit, lambda text: body_of(request, settings, text, limit))


def body_of(request: Request, settings: Settings, data: str, limit: int) -> dict[str, Any]:
    """Write the body around what comes from outside."""
    detail = settings.detail or "auto"
    slots = [{"type": "input_image", "image_url": slot_of(image), "detail": detail} for image in request.images]
    body: dict[str, Any] = {
        "model": settings.model,
        "instructions": request.instructions,
        "input": [{"role": "user", "content": [{"type": "input_text", "text": data}, *slots]}],
        "text": {
            "format": {"type": "json_schema", **response_format(request.schema_type, settings.dialect)["json_schema"]}
        },
        "max_output_tokens": limit,
        "store": False,
        **settings.sampling(request.sample),
    }
    return body | {"reasoning": {"effort": settings.effort}} if settings.effort else body


def wire(outgoing: Outgoing) -> bytes:
    """Write the bytes that leave."""
    return filled(outgoing, fill)


def fill(body: Any, images: dict[str, Image]) -> int:  # noqa: ANN401 - JSON of our own
    """Put the images where their names stand."""
    slots = [part for part in body["input"][0]["content"] if part["type"] == "input_image"]
    for part in slots:
        part["image_url"] = data_url(images[part["image_url"]])
    return len(slots)


def read(raw: bytes) -> Reply:
    """Read a reply."""
    body = record(decoded(raw))
    status = text(body.get("status"))
    if status not in ("completed", "incomplete"):
        found = why_no_object(raw) if raw and not body else "not a response"
        nothing = f"status {shortened(status)}" if status else found
        return Reply("", stop="unreadable", detail=nothing)
    parts = [
        part
        for item in records(body.get("output"))
        if item.get("type") == "message"
        for part in records(item.get("content"))
    ]
    said = "".join(text(part.get("text")) for part in parts if part.get("type") == "output_text")
    refusal = "".join(text(part.get("refusal")) for part in parts if part.get("type") == "refusal")
    stop, detail = ending(body, said, refusal)
    return Reply(said or refusal, usage(body.get("usage"), said or refusal), stop, detail, text(body.get("model")))


def ending(body: dict[str, Any], said: str, refusal: str) -> tuple[Stop, str]:
    """Tell why a reply ended."""
    if refusal:
        return "refusal", "the model declined"
    if body["status"] == "completed":
        return "end", ""
    reason = text(record(body.get("incomplete_details")).get("reason"))
    if reason == "content_filter":
        return "blocked", reason
    return "length", how_cut(said)


def usage(value: object, said: str) -> Usage:
    """Read what the provider counted; count here where it did not."""
    return stated_usage(value, said, sent="input_tokens", came="output_tokens")
