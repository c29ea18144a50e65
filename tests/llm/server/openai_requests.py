"""What OpenAI takes in a request, field by field, and how it complains."""

from collections.abc import Mapping
from typing import Any

from tests.llm.server.error_replies import Refused
from tests.llm.server.openai_schema import check_strict_schema
from tests.llm.server.shapes import (
    Complaint,
    Shape,
    anything,
    either,
    fields,
    flag,
    list_of,
    mapping_of,
    maybe,
    number,
    one_of,
    text,
    whole,
)

__all__ = ["BATCH_FIELDS", "CHAT_FIELDS", "METADATA", "check_batch", "check_chat", "fitting"]

METADATA = maybe(mapping_of(text(512), most=16, longest_key=64))
_EFFORT = maybe(one_of("none", "minimal", "low", "medium", "high", "xhigh", "max"))
_TIER = maybe(one_of("auto", "default", "flex", "scale", "priority"))

_IMAGE = fields({"url": text(20_000_000), "detail": one_of("auto", "low", "high", "original")}, required=("url",))
_TEXT_PART = fields({"type": anything, "text": text(), "prompt_cache_breakpoint": anything}, required=("text",))
_USER_PARTS = either(
    "type",
    {
        "text": _TEXT_PART,
        "image_url": fields(
            {"type": anything, "image_url": _IMAGE, "prompt_cache_breakpoint": anything}, required=("image_url",)
        ),
    },
)


def _content(part: Shape) -> Shape:
    string, parts = text(), list_of(part, least=1)
    return lambda value, path: (string if isinstance(value, str) else parts)(value, path)


_TEXTS_ONLY = _content(either("type", {"text": _TEXT_PART}))
_NAMED = {"role": anything, "name": text(64)}
_MESSAGE = either(
    "role",
    {
        "system": fields({**_NAMED, "content": _TEXTS_ONLY}, required=("content",)),
        "developer": fields({**_NAMED, "content": _TEXTS_ONLY}, required=("content",)),
        "user": fields({**_NAMED, "content": _content(_USER_PARTS)}, required=("content",)),
        "assistant": fields({**_NAMED, "content": maybe(_TEXTS_ONLY), "refusal": maybe(text())}),
    },
)
_SCHEMA = {"name": text(64), "description": text(), "schema": mapping_of(anything), "strict": maybe(flag)}
_FORMAT = either(
    "type",
    {
        "text": fields({"type": anything}),
        "json_object": fields({"type": anything}),
        "json_schema": fields(
            {"type": anything, "json_schema": fields(_SCHEMA, required=("name",))}, required=("json_schema",)
        ),
    },
)


def _stop(value: Any, path: tuple[str | int, ...]) -> None:
    (text() if isinstance(value, str) else list_of(text(), most=4))(value, path)


CHAT_FIELDS: dict[str, Shape] = {
    "messages": list_of(_MESSAGE, least=1),
    "model": text(least=1),
    "frequency_penalty": maybe(number(-2, 2)),
    "logit_bias": maybe(mapping_of(number(-100, 100))),
    "logprobs": maybe(flag),
    "max_completion_tokens": maybe(whole(1)),
    "max_tokens": maybe(whole(1)),
    "metadata": METADATA,
    "n": maybe(whole(1, 1)),
    "presence_penalty": maybe(number(-2, 2)),
    "prompt_cache_key": text(),
    "reasoning_effort": _EFFORT,
    "response_format": _FORMAT,
    "safety_identifier": text(64),
    "seed": maybe(whole(-(2**63))),
    "service_tier": _TIER,
    "stop": maybe(_stop),
    "store": maybe(flag),
    "stream": maybe(flag),
    "stream_options": maybe(fields({"include_usage": flag, "include_obfuscation": flag})),
    "temperature": maybe(number(0, 2)),
    "top_logprobs": maybe(whole(0, 20)),
    "top_p": maybe(number(0, 1)),
    "user": text(),
    "verbosity": maybe(one_of("low", "medium", "high")),
}
"""Fields for text and images. Tools, audio and searches are known to the real service and not to this one."""

_LOCAL: dict[str, Shape] = {
    "top_k": whole(-1),
    "min_p": number(0, 1),
    "repetition_penalty": number(0, 10),
    "chat_template_kwargs": mapping_of(anything),
}
_DIALECTS: dict[str, dict[str, Shape]] = {
    "openai": {},
    "vllm": {
        **_LOCAL,
        "guided_json": mapping_of(anything),
        "structured_outputs": fields({"json": mapping_of(anything), "whitespace_pattern": text()}),
        "min_tokens": whole(0),
    },
    "llamacpp": {
        **_LOCAL,
        "response_format": mapping_of(anything),
        "json_schema": mapping_of(anything),
        "grammar": text(),
        "cache_prompt": flag,
    },
    "ollama": {"think": flag, "keep_alive": anything},
}
_CHATS = {
    dialect: fields({**CHAT_FIELDS, **more}, required=("messages", "model")) for dialect, more in _DIALECTS.items()
}

BATCH_FIELDS: dict[str, Shape] = {
    "completion_window": one_of("24h"),
    "endpoint": one_of(
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/embeddings",
        "/v1/completions",
        "/v1/moderations",
        "/v1/images/generations",
    ),
    "input_file_id": text(least=1),
    "metadata": METADATA,
    "output_expires_after": fields(
        {"anchor": one_of("created_at"), "seconds": whole(3600, 2_592_000)}, required=("anchor", "seconds")
    ),
}
_BATCH = fields(BATCH_FIELDS, required=("completion_window", "endpoint", "input_file_id"))


def check_chat(body: Any, dialect: str = "openai") -> None:
    """Refuse a chat completion request the service would not take.

    Raises:
        Refused: in the provider's words.
    """
    fitting(_CHATS[dialect], body)
    if body.get("stream_options") is not None and not body.get("stream"):
        raise Refused("bad-request", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise Refused("bad-request", "'max_tokens' and 'max_completion_tokens' cannot both be set.")
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        raise Refused("bad-request", "'top_logprobs' is only allowed when 'logprobs' is enabled.", param="top_logprobs")
    if dialect == "openai":
        _check_format(body)


def _check_format(body: Mapping[str, Any]) -> None:
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema" and wanted["json_schema"].get("strict"):
        if "schema" not in wanted["json_schema"]:
            raise Refused("bad-request", "Missing required parameter: 'response_format.json_schema.schema'.")
        check_strict_schema(wanted["json_schema"]["name"], wanted["json_schema"]["schema"])
    if wanted.get("type") == "json_object" and "json" not in str(body["messages"]).lower():
        problem = "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'."
        raise Refused("bad-request", problem, param="messages")


def check_batch(body: Any) -> None:
    """Refuse the making of a batch the service would not make."""
    fitting(_BATCH, body)


def fitting(shape: Shape, body: Any) -> None:
    """Hold a body against a shape; say in OpenAI's words what does not fit.

    Raises:
        Refused: something does not.
    """
    try:
        shape(body, ())
    except Complaint as complaint:
        where = _spelled(complaint.path)
        match complaint.kind:
            case "unknown":
                raise Refused(
                    "bad-request", f"Unknown parameter: '{where}'.", param=where, code="unknown_parameter"
                ) from None
            case "missing":
                raise Refused(
                    "bad-request",
                    f"Missing required parameter: '{where}'.",
                    param=where,
                    code="missing_required_parameter",
                ) from None
            case kind:
                code = "invalid_type" if kind == "type" else "invalid_value"
                found = str(complaint.found)[:80]
                message = f"Invalid {kind} for '{where}': expected {complaint.expected}, but got {found!r} instead."
                raise Refused("bad-request", message, param=where, code=code) from None


def _spelled(path: tuple[str | int, ...]) -> str:
    written = ""
    for step in path:
        written += f"[{step}]" if isinstance(step, int) else (f".{step}" if written else step)
    return written
