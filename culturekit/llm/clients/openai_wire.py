"""OpenAI's protocols on the wire: what follows from the SPEC, what is asked, and what the reply says."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from culturekit.core.errors import UsageError
from culturekit.llm.client import Outgoing, Reply, Request, Stop, Usage, how_cut
from culturekit.llm.clients.client_options import Dialect, OpenAIOptions
from culturekit.llm.clients.image_slots import BodyTemplates, slot_of
from culturekit.llm.endpoints import OPENAI
from culturekit.llm.failures import shortened
from culturekit.llm.json_values import decoded, each_key_once, record, records, text, why_no_object
from culturekit.llm.models import Habits, habits_of
from culturekit.llm.reply_schema import response_format
from culturekit.llm.rows import MOST_LISTED, listed_tokens, refuse_weighing
from culturekit.llm.usage import MOST_TOKENS, stated_usage, too_few

_ROOM_TO_THINK = 4096


@dataclass(frozen=True, slots=True)
class _Settings:
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
        return (self.max_tokens or request.max_tokens) + self.room

    def sampling(self, sample: int) -> dict[str, Any]:
        """Return how tokens are drawn; samples of one question are drawn from different seeds."""
        seed = None if self.seed is None else self.seed + sample
        chosen = {"temperature": self.temperature, "top_p": self.top_p, "seed": seed}
        return {name: value for name, value in chosen.items() if value is not None}


def settings_of(model: str, base_url: str, options: OpenAIOptions) -> _Settings:
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
        room = _ROOM_TO_THINK if habits.thinks and not unthinking else 0
    temperature = options.temperature
    if temperature is None and habits.samples:
        temperature = 0.0
    return _Settings(
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


_STOPS: dict[str, Stop] = {"stop": "end", "length": "length", "content_filter": "blocked"}

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


def compose_completion(request: Request, settings: _Settings, templates: BodyTemplates) -> Outgoing:
    """Write a request; whatever is random in it depends on its sample."""
    if not settings.weighs:
        refuse_weighing(request, f"{settings.model}, which thinks before it answers,")
    limit = settings.limit(request)
    return templates.outgoing(
        request, limit, lambda text: _completion_body(request, settings, text), bool(request.weighed)
    )


def _completion_body(request: Request, settings: _Settings, data: str) -> dict[str, Any]:
    """Write the body around what comes from outside."""
    wanted: dict[str, Any] = {"logprobs": True, "top_logprobs": MOST_LISTED}
    if not request.weighed:
        wanted = {"response_format": response_format(request.schema_type, settings.dialect)}
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": [
            {"role": "system", "content": request.instructions},
            {"role": "user", "content": _user_content(request, settings, data)},
        ],
        **wanted,
        settings.limit_field: settings.limit(request),
        **settings.sampling(request.sample),
    }
    return body | {"reasoning_effort": settings.effort} if settings.effort else body


def _user_content(request: Request, settings: _Settings, data: str) -> str | list[dict[str, Any]]:
    """Write what comes from outside: text alone, or text and the slots of its images."""
    if not request.images:
        return data
    detail = {"detail": settings.detail} if settings.detail else {}
    slots = [{"type": "image_url", "image_url": {"url": slot_of(image), **detail}} for image in request.images]
    return [{"type": "text", "text": data}, *slots]


def read_completion(raw: bytes) -> Reply:
    """Read a reply."""
    return plain_completion(raw) or any_completion(raw)


def any_completion(raw: bytes) -> Reply:
    """Read a reply of which nothing is certain."""
    body = record(decoded(raw))
    choices = records(body.get("choices"))
    message = record(choices[0].get("message")) if choices else {}
    if not message:
        return Reply("", stop="unreadable", detail="no message in the reply" if body else why_no_object(raw))
    version = " ".join(part for part in (text(body.get("model")), text(body.get("system_fingerprint"))) if part)
    content, refusal = message.get("content"), text(message.get("refusal"))
    reply_text = text(content) or "".join(text(part.get("text")) for part in records(content))  # some send parts
    reason = text(choices[0].get("finish_reason"))
    stop, detail = _completion_ending(reply_text, refusal, reason)
    counts = stated_usage(body.get("usage"), reply_text or refusal, sent="prompt_tokens", came="completion_tokens")
    return Reply(reply_text or refusal, counts, stop, detail, version, listed_tokens(choices[0].get("logprobs")))


def _completion_ending(reply_text: str, refusal: str, reason: str) -> tuple[Stop, str]:
    """Return why a reply ended."""
    if refusal:
        return "refusal", "the model declined"
    stop = _STOPS.get(reason, "end")
    if stop == "length":
        return stop, how_cut(reply_text)
    return stop, "" if stop == "end" and reason in ("stop", "") else reason


class _Message(msgspec.Struct, gc=False):
    content: Annotated[str, msgspec.Meta(min_length=1)]
    refusal: None = None


class _Choice(msgspec.Struct, gc=False):
    message: _Message
    finish_reason: Literal["stop"]
    logprobs: None = None


class _InputDetails(msgspec.Struct, gc=False):
    cached_tokens: _Count | None = None


class _OutputDetails(msgspec.Struct, gc=False):
    reasoning_tokens: _Count | None = None


class _Counts(msgspec.Struct, gc=False):
    prompt_tokens: _Count
    completion_tokens: _Count
    total_tokens: _Count | None = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None


class _Completion(msgspec.Struct, gc=False):
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
    usage: _Counts
    model: str = ""
    system_fingerprint: str | None = None


# A reply with nothing odd about it.
_USUAL = msgspec.json.Decoder(_Completion)


def plain_completion(raw: bytes) -> Reply | None:
    """Read the usual reply; None for any other, which is looked at field by field."""
    try:
        body = _USUAL.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    text, usage = body.choices[0].message.content, _plain_usage(body.usage)
    if usage is None or too_few(usage.output_tokens, text) or not each_key_once(raw):
        return None
    version = " ".join(part for part in (body.model, body.system_fingerprint) if part)
    return Reply(text, usage, model_version=version)


def _plain_usage(counts: _Counts) -> Usage | None:
    """Take counts that fit together; None where they do not."""
    details, known = counts.completion_tokens_details, counts.prompt_tokens_details
    thought = (details.reasoning_tokens or 0) if details else 0
    cached = (known.cached_tokens or 0) if known else 0
    sent, came = counts.prompt_tokens, counts.completion_tokens
    if not sent or cached > sent or thought > came or (counts.total_tokens or 0) > sent + came:
        return None
    return Usage(sent, came, thought, cached)


_LEAST_TOKENS = 16


def compose_response(request: Request, settings: _Settings, templates: BodyTemplates) -> Outgoing:
    """Write a request; nothing of it is to be stored by the provider."""
    refuse_weighing(request, "the responses API")
    limit = max(settings.limit(request), _LEAST_TOKENS)
    return templates.outgoing(request, limit, lambda text: _response_body(request, settings, text, limit))


def _response_body(request: Request, settings: _Settings, data: str, limit: int) -> dict[str, Any]:
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


def read_response(raw: bytes) -> Reply:
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
    reply_text = "".join(text(part.get("text")) for part in parts if part.get("type") == "output_text")
    refusal = "".join(text(part.get("refusal")) for part in parts if part.get("type") == "refusal")
    stop, detail = _response_ending(body, reply_text, refusal)
    usage = stated_usage(body.get("usage"), reply_text or refusal, sent="input_tokens", came="output_tokens")
    return Reply(reply_text or refusal, usage, stop, detail, text(body.get("model")))


def _response_ending(body: dict[str, Any], reply_text: str, refusal: str) -> tuple[Stop, str]:
    """Return why a reply ended."""
    if refusal:
        return "refusal", "the model declined"
    if body["status"] == "completed":
        return "end", ""
    reason = text(record(body.get("incomplete_details")).get("reason"))
    if reason == "content_filter":
        return "blocked", reason
    return "length", how_cut(reply_text)
