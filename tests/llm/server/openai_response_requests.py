"""What OpenAI takes in a request for a response, field by field."""

from typing import Any

from tests.llm.server.error_replies import Refused
from tests.llm.server.openai_requests import METADATA, check_strict_schema, fitting
from tests.llm.server.shapes import (
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

_TEXT = fields({"type": anything, "text": text(), "prompt_cache_breakpoint": anything}, required=("text",))
_IMAGE = fields(
    {
        "type": anything,
        "image_url": maybe(text(20_000_000)),
        "file_id": maybe(text()),
        "detail": one_of("auto", "low", "high", "original"),
        "prompt_cache_breakpoint": anything,
    }
)
_PARTS = list_of(either("type", {"input_text": _TEXT, "input_image": _IMAGE, "output_text": _TEXT}), least=1)


def _content(value: Any, path: tuple[str | int, ...]) -> None:
    (text() if isinstance(value, str) else _PARTS)(value, path)


_ITEM = fields(
    {"type": one_of("message"), "role": one_of("user", "assistant", "system", "developer"), "content": _content},
    required=("role", "content"),
)
_ITEMS = list_of(_ITEM, least=1)


def _input(value: Any, path: tuple[str | int, ...]) -> None:
    (text() if isinstance(value, str) else _ITEMS)(value, path)


_FORMAT = either(
    "type",
    {
        "text": fields({"type": anything}),
        "json_object": fields({"type": anything}),
        "json_schema": fields(
            {
                "type": anything,
                "name": text(64, least=1),
                "schema": mapping_of(anything),
                "description": text(),
                "strict": maybe(flag),
            },
            required=("name", "schema"),
        ),
    },
)

# Fields for text and images. There is no `seed`, as in the real one.
RESPONSE_FIELDS: dict[str, Shape] = {
    "background": maybe(flag),
    "include": maybe(list_of(text())),
    "input": _input,
    "instructions": maybe(text()),
    "max_output_tokens": maybe(whole(16)),
    "metadata": METADATA,
    "model": text(least=1),
    "prompt_cache_key": text(),
    "reasoning": maybe(
        fields(
            {
                "effort": maybe(one_of("none", "minimal", "low", "medium", "high", "xhigh", "max")),
                "summary": maybe(one_of("auto", "concise", "detailed")),
            }
        )
    ),
    "safety_identifier": text(64),
    "service_tier": maybe(one_of("auto", "default", "flex", "scale", "priority")),
    "store": maybe(flag),
    "temperature": maybe(number(0, 2)),
    "text": fields({"format": _FORMAT, "verbosity": maybe(one_of("low", "medium", "high"))}),
    "top_logprobs": maybe(whole(0, 20)),
    "top_p": maybe(number(0, 1)),
    "truncation": maybe(one_of("auto", "disabled")),
    "user": text(),
}
_REQUEST = fields(RESPONSE_FIELDS, required=("input", "model"))


def check_responses(body: Any) -> None:
    """Refuse a request the service would not take.

    Raises:
        Refused: in the provider's words.
    """
    fitting(_REQUEST, body)
    wanted = (body.get("text") or {}).get("format") or {}
    if wanted.get("type") == "json_schema" and wanted.get("strict"):
        check_strict_schema(wanted["name"], wanted["schema"])
    if body.get("background"):
        raise Refused("bad-request", "Background responses are not offered here.", param="background")
