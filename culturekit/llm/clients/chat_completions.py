"""OpenAI's chat completions on the wire: what is asked, and what the reply says."""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from culturekit.llm.client import Image, Outgoing, Reply, Request, Stop, Usage, how_cut
from culturekit.llm.clients.image_slots import BodyTemplates, data_url, filled, slot_of
from culturekit.llm.clients.openai_settings import Settings
from culturekit.llm.json_values import decoded, each_key_once, record, records, text, why_no_object
from culturekit.llm.reply_schema import response_format
from culturekit.llm.rows import MOST_LISTED, listed_tokens, refuse_weighing
from culturekit.llm.usage import MOST_TOKENS, stated_usage, too_few

STOPS: dict[str, Stop] = {"stop": "end", "length": "length", "content_filter": "blocked"}

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


def compose(request: Request, settings: Settings, templates: BodyTemplates) -> Outgoing:
    """Write a request; whatever is random in it depends on its sample."""
    if not settings.weighs:
        refuse_weighing(request, f"{settings.model}, which thinks before it answers,")
    limit = settings.limit(request)
    return templates.outgoing(request, limit, lambda text: body_of(request, settings, text), bool(request.weighed))


def body_of(request: Request, settings: Settings, data: str) -> dict[str, Any]:
    """Write the body around what comes from outside."""
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": [
            {"role": "system", "content": request.instructions},
            {"role": "user", "content": user_content(request, settings, data)},
        ],
        **wanted(request, settings),
        settings.limit_field: settings.limit(request),
        **settings.sampling(request.sample),
    }
    return body | {"reasoning_effort": settings.effort} if settings.effort else body


def wanted(request: Request, settings: Settings) -> dict[str, Any]:
    """Write what is wanted back: an answer of a shape, or how probable the first tokens of one are."""
    if request.weighed:
        return {"logprobs": True, "top_logprobs": MOST_LISTED}
    return {"response_format": response_format(request.schema_type, settings.dialect)}


def user_content(request: Request, settings: Settings, data: str) -> str | list[dict[str, Any]]:
    """Write what comes from outside: text alone, or text and the slots of its images."""
    if not request.images:
        return data
    detail = {"detail": settings.detail} if settings.detail else {}
    slots = [{"type": "image_url", "image_url": {"url": slot_of(image), **detail}} for image in request.images]
    return [{"type": "text", "text": data}, *slots]


def wire(outgoing: Outgoing) -> bytes:
    """Write the bytes that leave."""
    return filled(outgoing, fill)


def fill(body: Any, images: dict[str, Image]) -> int:  # noqa: ANN401 - JSON of our own
    """Put the images where their names stand."""
    count = 0
    for part in body["messages"][1]["content"]:
        if part["type"] == "image_url":
            part["image_url"]["url"] = data_url(images[part["image_url"]["url"]])
            count += 1
    return count


def read(raw: bytes) -> Reply:
    """Read a reply."""
    return plain_reply(raw) or any_reply(raw)


def any_reply(raw: bytes) -> Reply:
    """Read a reply of which nothing is certain."""
    body = record(decoded(raw))
    choices = records(body.get("choices"))
    message = record(choices[0].get("message")) if choices else {}
    if not message:
        return Reply("", stop="unreadable", detail="no message in the reply" if body else why_no_object(raw))
    version = " ".join(part for part in (text(body.get("model")), text(body.get("system_fingerprint"))) if part)
    said, refusal = content_text(message.get("content")), text(message.get("refusal"))
    reason = text(choices[0].get("finish_reason"))
    stop, detail = ending(said, refusal, reason)
    counts = usage(body.get("usage"), said or refusal)
    return Reply(said or refusal, counts, stop, detail, version, listed_tokens(choices[0].get("logprobs")))


def ending(said: str, refusal: str, reason: str) -> tuple[Stop, str]:
    """Tell why a reply ended."""
    if refusal:
        return "refusal", "the model declined"
    stop = STOPS.get(reason, "end")
    if stop == "length":
        return stop, how_cut(said)
    return stop, "" if stop == "end" and reason in ("stop", "") else reason


def content_text(content: object) -> str:
    """Take the text of a message, which some servers send in parts."""
    return text(content) or "".join(text(part.get("text")) for part in records(content))


def usage(value: object, said: str) -> Usage:
    """Read what the provider counted; count here where it did not."""
    return stated_usage(value, said, sent="prompt_tokens", came="completion_tokens")


class Message(msgspec.Struct, gc=False):
    """What was said; nothing was refused."""

    content: Annotated[str, msgspec.Meta(min_length=1)]
    refusal: None = None


class Choice(msgspec.Struct, gc=False):
    """An answer that came to its end; no probabilities of tokens stand beside it."""

    message: Message
    finish_reason: Literal["stop"]
    logprobs: None = None


class InputDetails(msgspec.Struct, gc=False):
    """Tokens that a cache knew."""

    cached_tokens: Count | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """Tokens that were thought."""

    reasoning_tokens: Count | None = None


class Counts(msgspec.Struct, gc=False):
    """What the provider counted."""

    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count | None = None
    prompt_tokens_details: InputDetails | None = None
    completion_tokens_details: OutputDetails | None = None


class Completion(msgspec.Struct, gc=False):
    """A reply with nothing odd about it."""

    choices: Annotated[list[Choice], msgspec.Meta(min_length=1)]
    usage: Counts
    model: str = ""
    system_fingerprint: str | None = None


USUAL = msgspec.json.Decoder(Completion)


def plain_reply(raw: bytes) -> Reply | None:
    """Read the usual reply; None for any other, which is looked at field by field."""
    try:
        body = USUAL.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    text, usage = body.choices[0].message.content, plain_usage(body.usage)
    if usage is None or too_few(usage.output_tokens, text) or not each_key_once(raw):
        return None
    version = " ".join(part for part in (body.model, body.system_fingerprint) if part)
    return Reply(text, usage, model_version=version)


def plain_usage(counts: Counts) -> Usage | None:
    """Take counts that fit together; None where they do not."""
    details, known = counts.completion_tokens_details, counts.prompt_tokens_details
    thought = (details.reasoning_tokens or 0) if details else 0
    cached = (known.cached_tokens or 0) if known else 0
    sent, came = counts.prompt_tokens, counts.completion_tokens
    if not sent or cached > sent or thought > came or (counts.total_tokens or 0) > sent + came:
        return None
    return Usage(sent, came, thought, cached)
