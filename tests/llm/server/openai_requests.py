"""What OpenAI takes in a request, field by field, and how it complains."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

from tests.llm.server.error_replies import Refused
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

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
_ANYWHERE = {"type", "description", "title", "enum", "const", "anyOf", "$ref", "$defs", "definitions"}
_BY_TYPE = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"pattern", "format"},
    "number": {"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "boolean": set[str](),
    "null": set[str](),
}
_BY_TYPE["integer"] = _BY_TYPE["number"]
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
_DEEPEST, _MOST_PROPERTIES, _MOST_ENUM, _MOST_CHARACTERS = 10, 5000, 1000, 120_000


def check_strict_schema(name: str, schema: Mapping[str, Any]) -> None:
    """Refuse a schema that strict mode does not take.

    Raises:
        Refused: naming the place, as the provider does.
    """
    if not _NAME.fullmatch(name):
        raise Refused("bad-request", f"Invalid 'response_format.json_schema.name': {name!r}.", code="invalid_value")
    problem = _problem(name, orjson.dumps(schema))
    if problem:
        raise Refused("bad-request", problem, param="response_format")


@lru_cache(maxsize=256)
def _problem(name: str, written: bytes) -> str:
    """Find the first problem; the schemas of a run are few, its requests many."""
    schema = orjson.loads(written)
    for where, problem in _problems(schema):
        return f"Invalid schema for response_format '{name}': In context={where}, {problem}"
    return ""


def _problems(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if schema.get("type") != "object" or "anyOf" in schema:
        yield "()", f"schema must be a JSON Schema of 'type: \"object\"', got 'type: {schema.get('type')!r}'."
    sizes = _Sizes()
    yield from _node(schema, (), 1, sizes, _defined(schema))
    if sizes.properties > _MOST_PROPERTIES:
        yield "()", f"there are {sizes.properties} properties, at most {_MOST_PROPERTIES} are allowed."
    if sizes.values > _MOST_ENUM:
        yield "()", f"there are {sizes.values} enum values, at most {_MOST_ENUM} are allowed."
    if sizes.characters > _MOST_CHARACTERS:
        yield "()", f"its strings have {sizes.characters} characters, at most {_MOST_CHARACTERS} are allowed."


class _Sizes:
    """What is counted over a whole schema."""

    properties = 0
    values = 0
    characters = 0


def _defined(schema: Mapping[str, Any]) -> set[str]:
    names = {f"#/{group}/{name}" for group in ("$defs", "definitions") for name in schema.get(group) or {}}
    return {"#", *names}


def _node(node: Any, where: tuple[str, ...], depth: int, sizes: _Sizes, defined: set[str]) -> Iterator[tuple[str, str]]:
    if not isinstance(node, dict):
        yield repr(where), f"{node!r} is not of type 'object'."
        return
    if depth > _DEEPEST:
        yield repr(where), f"nesting is deeper than {_DEEPEST} levels."
        return
    yield from _keywords(node, where, sizes, defined)
    kinds = node.get("type", [])
    if "object" in ([kinds] if isinstance(kinds, str) else kinds) or "properties" in node:
        yield from _object(node, where, sizes)
    for group in ("properties", "$defs", "definitions"):
        for name, part in (node.get(group) or {}).items():
            inner = depth + (group == "properties")
            yield from _node(part, (*where, group, name), inner, sizes, defined)
    if "items" in node:
        yield from _node(node["items"], (*where, "items"), depth + 1, sizes, defined)
    for place, part in enumerate(node.get("anyOf") or ()):
        yield from _node(part, (*where, "anyOf", str(place)), depth, sizes, defined)


def _keywords(
    node: Mapping[str, Any], where: tuple[str, ...], sizes: _Sizes, defined: set[str]
) -> Iterator[tuple[str, str]]:
    given = node.get("type", [])
    kinds = [given] if isinstance(given, str) else given
    for kind in kinds:
        if kind not in _TYPES:
            yield repr(where), f"{kind!r} is not one of the known types."
            return
    allowed = _ANYWHERE.union(*(_BY_TYPE[kind] for kind in kinds))
    for keyword in sorted(node.keys() - allowed):
        yield repr(where), f"'{keyword}' is not permitted."
    if not kinds and not {"anyOf", "$ref"} & node.keys():
        yield repr(where), "schema must have a 'type' key."
    if "$ref" in node:
        if node["$ref"] not in defined:
            yield repr(where), f"reference can only point to definitions defined at the top level: {node['$ref']!r}."
        if node.keys() - {"$ref", "description"}:
            yield repr(where), "$ref cannot have keywords beside it."
    if "format" in node and node["format"] not in _FORMATS:
        yield repr(where), f"format {node['format']!r} is not supported."
    values = node.get("enum") or ()
    sizes.values += len(values)
    sizes.characters += sum(len(str(value)) for value in values) + len(str(node.get("const", "")))
    if "enum" in node and not values:
        yield repr(where), "enum must not be empty."


def _object(node: Mapping[str, Any], where: tuple[str, ...], sizes: _Sizes) -> Iterator[tuple[str, str]]:
    properties = node.get("properties") or {}
    sizes.properties += len(properties)
    sizes.characters += sum(map(len, properties))
    if node.get("additionalProperties") is not False:
        yield repr(where), "'additionalProperties' is required to be supplied and to be false."
    required = node.get("required")
    if not isinstance(required, list) or set(required) != set(properties):
        missing = sorted(set(properties) ^ set(required or ()))
        problem = "'required' is required to be supplied and to be an array including every key in properties."
        yield repr(where), f"{problem} See {missing[0]!r}." if missing else problem


METADATA = maybe(mapping_of(text(512), most=16, longest_key=64))
_EFFORT = maybe(one_of("none", "minimal", "low", "medium", "high", "xhigh", "max"))
_DETAIL = one_of("auto", "low", "high", "original")
_TEXT_PART = fields({"type": anything, "text": text()}, required=("text",))
_IMAGE = fields({"url": text(20_000_000), "detail": _DETAIL}, required=("url",))
_IMAGE_PART = fields({"type": anything, "image_url": _IMAGE}, required=("image_url",))
_USER_PARTS = either("type", {"text": _TEXT_PART, "image_url": _IMAGE_PART})


def _content(part: Shape) -> Shape:
    string, parts = text(), list_of(part, least=1)
    return lambda value, path: (string if isinstance(value, str) else parts)(value, path)


_MESSAGE = either(
    "role",
    {
        role: fields({"role": anything, "content": _content(parts)}, required=("content",))
        for role, parts in (("system", either("type", {"text": _TEXT_PART})), ("user", _USER_PARTS))
    },
)
_SCHEMA = {"name": text(64), "description": text(), "schema": mapping_of(anything), "strict": maybe(flag)}
_JSON_SCHEMA = fields(
    {"type": anything, "json_schema": fields(_SCHEMA, required=("name", "schema"))}, required=("json_schema",)
)

# Fields that this package sends; the real service knows more.
CHAT_FIELDS: dict[str, Shape] = {
    "messages": list_of(_MESSAGE, least=1),
    "model": text(least=1),
    "logprobs": maybe(flag),
    "max_completion_tokens": maybe(whole(1)),
    "max_tokens": maybe(whole(1)),
    "reasoning_effort": _EFFORT,
    "response_format": either("type", {"json_schema": _JSON_SCHEMA}),
    "seed": maybe(whole(-(2**63))),
    "temperature": maybe(number(0, 2)),
    "top_logprobs": maybe(whole(0, 20)),
    "top_p": maybe(number(0, 1)),
}
_CHAT = fields(CHAT_FIELDS, required=("messages", "model"))

_RESPONSE_IMAGE = fields({"type": anything, "image_url": maybe(text(20_000_000)), "detail": _DETAIL})
_RESPONSE_PARTS = either("type", {"input_text": _TEXT_PART, "input_image": _RESPONSE_IMAGE})
_ITEM = fields({"role": one_of("user"), "content": list_of(_RESPONSE_PARTS, least=1)}, required=("role", "content"))
_RESPONSE_FORMAT = fields({"type": one_of("json_schema"), **_SCHEMA}, required=("type", "name", "schema"))
# There is no `seed`, as in the real one.
RESPONSE_FIELDS: dict[str, Shape] = {
    "input": list_of(_ITEM, least=1),
    "instructions": maybe(text()),
    "max_output_tokens": maybe(whole(16)),
    "model": text(least=1),
    "reasoning": fields({"effort": _EFFORT}),
    "store": maybe(flag),
    "temperature": maybe(number(0, 2)),
    "text": fields({"format": _RESPONSE_FORMAT}),
    "top_p": maybe(number(0, 1)),
}
_RESPONSE = fields(RESPONSE_FIELDS, required=("input", "model"))

BATCH_FIELDS: dict[str, Shape] = {
    "completion_window": one_of("24h"),
    "endpoint": one_of("/v1/chat/completions", "/v1/responses", "/v1/images/generations"),
    "input_file_id": text(least=1),
    "metadata": METADATA,
}
_BATCH = fields(BATCH_FIELDS, required=("completion_window", "endpoint", "input_file_id"))


def check_chat(body: Any, dialect: str = "openai") -> None:
    """Refuse a chat completion request the service would not take; other servers hold nobody to a strict schema.

    Raises:
        Refused: in the provider's words.
    """
    fitting(_CHAT, body)
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise Refused("bad-request", "'max_tokens' and 'max_completion_tokens' cannot both be set.")
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        raise Refused("bad-request", "'top_logprobs' is only allowed when 'logprobs' is enabled.", param="top_logprobs")
    wanted = (body.get("response_format") or {}).get("json_schema") or {}
    if dialect == "openai" and wanted.get("strict"):
        check_strict_schema(wanted["name"], wanted["schema"])


def check_responses(body: Any) -> None:
    """Refuse a request for a response the service would not take."""
    fitting(_RESPONSE, body)
    wanted = (body.get("text") or {}).get("format") or {}
    if wanted.get("strict"):
        check_strict_schema(wanted["name"], wanted["schema"])


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
