"""What OpenAI takes in a request, and how it complains. Fields that this package sends; the real service knows more."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

import orjson
from msgspec import Meta

from tests.llm.server.error_replies import Refused
from tests.llm.server.shapes import Strict, fitting, nodes

_Name: TypeAlias = Annotated[str, Meta(min_length=1)]
_Positive: TypeAlias = Annotated[int, Meta(ge=1)]
_Temperature: TypeAlias = Annotated[float, Meta(ge=0, le=2)]
_Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
_Address: TypeAlias = Annotated[str, Meta(max_length=20_000_000)]
_Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
_Detail: TypeAlias = Literal["auto", "low", "high", "original"]


class _Image(Strict):
    url: _Address
    detail: _Detail = "auto"


class _Text(Strict, tag="text"):
    text: str


class _Picture(Strict, tag="image_url"):
    image_url: _Image


class _System(Strict, tag_field="role", tag="system"):
    content: str | list[_Text]


class _User(Strict, tag_field="role", tag="user"):
    content: str | Annotated[list[_Text | _Picture], Meta(min_length=1)]


class _Schema(Strict):
    name: Annotated[str, Meta(max_length=64)]
    schema: dict[str, Any]
    description: str = ""
    strict: bool | None = None


class _Format(Strict, tag="json_schema"):
    json_schema: _Schema


class Chat(Strict):
    """The body of a chat completion."""

    messages: Annotated[list[_System | _User], Meta(min_length=1)]
    model: _Name
    logprobs: bool | None = None
    max_completion_tokens: _Positive | None = None
    max_tokens: _Positive | None = None
    reasoning_effort: _Effort | None = None
    response_format: _Format | None = None
    seed: int | None = None
    temperature: _Temperature | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    top_p: _Share | None = None


class _InputText(Strict, tag="input_text"):
    text: str


class _InputImage(Strict, tag="input_image"):
    detail: _Detail
    image_url: _Address | None = None


class _Item(Strict):
    role: Literal["user"]
    content: Annotated[list[_InputText | _InputImage], Meta(min_length=1)]


class _TextFormat(_Schema, tag="json_schema"):
    pass


class _TextOptions(Strict):
    format: _TextFormat


class _Reasoning(Strict):
    effort: _Effort | None = None


class Responses(Strict):
    """The body of a request for a response; it knows no seed, as the real one does not."""

    input: Annotated[list[_Item], Meta(min_length=1)]
    model: _Name
    instructions: str | None = None
    max_output_tokens: Annotated[int, Meta(ge=16)] | None = None
    reasoning: _Reasoning | None = None
    store: bool | None = None
    temperature: _Temperature | None = None
    text: _TextOptions | None = None
    top_p: _Share | None = None


class Batch(Strict):
    """The body that makes a batch."""

    completion_window: Literal["24h"]
    endpoint: Literal["/v1/chat/completions", "/v1/responses", "/v1/images/generations"]
    input_file_id: _Name
    metadata: (
        Annotated[dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)]
        | None
    ) = None


def check_chat(body: Any) -> None:
    """Refuse a chat completion request the service would not take.

    Raises:
        Refused: in the provider's words.
    """
    fitting(Chat, body)
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise Refused("bad-request", "'max_tokens' and 'max_completion_tokens' cannot both be set.")
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        raise Refused("bad-request", "'top_logprobs' is only allowed when 'logprobs' is enabled.", param="top_logprobs")
    _check_strict((body.get("response_format") or {}).get("json_schema") or {})


def check_responses(body: Any) -> None:
    """Refuse a request for a response the service would not take."""
    fitting(Responses, body)
    _check_strict((body.get("text") or {}).get("format") or {})


def _check_strict(wanted: Mapping[str, Any]) -> None:
    if wanted.get("strict"):
        check_strict_schema(wanted["name"], wanted["schema"])


def check_strict_schema(name: str, schema: Mapping[str, Any]) -> None:
    """Refuse a schema that strict mode does not take.

    Raises:
        Refused: naming the place, as the provider does.
    """
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        raise Refused("bad-request", f"Invalid 'response_format.json_schema.name': {name!r}.", code="invalid_value")
    if problem := _first_problem(orjson.dumps(schema)):
        message = f"Invalid schema for response_format '{name}': In context={problem}"
        raise Refused("bad-request", message, param="response_format")


@lru_cache(maxsize=256)
def _first_problem(written: bytes) -> str:
    """Find the first problem; the schemas of a run are few, its requests many."""
    return next(_problems(orjson.loads(written)), "")


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
_MOST = {"properties": 5000, "enum values": 1000, "characters in its strings": 120_000}
_DEEPEST = 10


def _problems(schema: dict[str, Any]) -> Iterator[str]:
    if schema.get("type") != "object" or "anyOf" in schema:
        yield f"(), schema must be a JSON Schema of 'type: \"object\"', got 'type: {schema.get('type')!r}'."
    defined = {"#", *(f"#/{group}/{name}" for group in ("$defs", "definitions") for name in schema.get(group) or {})}
    sizes = dict.fromkeys(_MOST, 0)
    for node, where, depth in nodes(schema, ""):
        yield from (f"{where}, {problem}" for problem in _problems_of(node, depth, defined))
        names, values = node.get("properties") or {}, node.get("enum") or ()
        sizes["properties"] += len(names)
        sizes["enum values"] += len(values)
        sizes["characters in its strings"] += sum(len(str(one)) for one in (*names, *values, node.get("const", "")))
    for what, size in sizes.items():
        if size > _MOST[what]:
            yield f"(), there are {size} {what}, at most {_MOST[what]} are allowed."


def _problems_of(node: Any, depth: int, defined: set[str]) -> Iterator[str]:
    if not isinstance(node, dict):
        yield f"{node!r} is not of type 'object'."
        return
    given = node.get("type", [])
    kinds = [given] if isinstance(given, str) else given
    if unknown := [kind for kind in kinds if kind not in _BY_TYPE]:
        yield f"{unknown[0]!r} is not one of the known types."
    allowed = _ANYWHERE.union(*(_BY_TYPE.get(kind, ()) for kind in kinds))
    yield from (f"'{keyword}' is not permitted." for keyword in sorted(node.keys() - allowed))
    if depth > _DEEPEST:
        yield f"nesting is deeper than {_DEEPEST} levels."
    if not kinds and not {"anyOf", "$ref"} & node.keys():
        yield "schema must have a 'type' key."
    if "$ref" in node and node["$ref"] not in defined:
        yield f"reference can only point to definitions defined at the top level: {node['$ref']!r}."
    if "$ref" in node and node.keys() - {"$ref", "description"}:
        yield "$ref cannot have keywords beside it."
    if "format" in node and node["format"] not in _FORMATS:
        yield f"format {node['format']!r} is not supported."
    if "enum" in node and not node["enum"]:
        yield "enum must not be empty."
    if "object" in kinds or "properties" in node:
        properties, required = node.get("properties") or {}, node.get("required")
        if node.get("additionalProperties") is not False:
            yield "'additionalProperties' is required to be supplied and to be false."
        if not isinstance(required, list) or set(required) != set(properties):
            missing = sorted(set(properties) ^ set(required or ()))
            yield f"'required' is required to be supplied and to include every key in properties. See {missing}."
