"""What Gemini takes in a request, and how it complains. Fields that this package sends; the real service knows more."""

import base64
import binascii
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Annotated, Any, Literal

import orjson
from msgspec import Meta

from tests.llm.server.error_replies import Refused
from tests.llm.server.shapes import Strict, fitting, nodes

# The fields of the service's Schema message, by their JSON names.
_SCHEMA_NAMES = """
type format title description nullable enum maxItems minItems properties required minProperties maxProperties
minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum
"""
SCHEMA_FIELDS = frozenset(_SCHEMA_NAMES.split())
# The keywords that `responseJsonSchema` supports; others would be ignored without a word, so here they are refused.
_KEYWORDS = """
$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum
anyOf oneOf properties additionalProperties required propertyOrdering
"""
_JSON_SCHEMA_KEYWORDS = frozenset(_KEYWORDS.split())
_TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
_FORMATS = {"STRING": {"enum", "date-time"}, "NUMBER": {"float", "double"}, "INTEGER": {"int32", "int64"}}
_LARGEST = 20 * 1024 * 1024
# What stands below these is not spelled by the service.
_FREE = {"responseSchema", "responseJsonSchema", "metadata"}


def camelled(value: Any) -> Any:
    """Spell the names of fields as JSON does; the service takes their proto names too."""
    if isinstance(value, list):
        return [camelled(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {camel(name): below for name, below in value.items()}
    return {name: below if name in _FREE else camelled(below) for name, below in named.items()}


def camel(name: str) -> str:
    """Spell a field's proto name as its JSON name."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


class _Google(Strict, rename="camel"):
    pass


class _Blob(_Google):
    data: str
    mime_type: Annotated[str, Meta(min_length=1)] = "image/png"

    def __post_init__(self) -> None:
        try:  # of the letters that are safe in a URL and those that are usual, JSON of protocol buffers takes both
            base64.b64decode(self.data.translate(str.maketrans("-_", "+/")), validate=True)
        except binascii.Error:
            raise ValueError("this is not base64") from None


class _Part(_Google):
    text: str = ""
    inline_data: _Blob | None = None


class _Content(_Google):
    parts: Annotated[list[_Part], Meta(min_length=1)]
    role: Literal["user", "model"] = "user"


class _Thinking(_Google):
    thinking_budget: Annotated[int, Meta(ge=-1, lt=2**31)] = 0
    thinking_level: Literal["MINIMAL", "LOW", "MEDIUM", "HIGH"] = "LOW"


class _ImageConfig(_Google):
    aspect_ratio: str = ""
    image_size: Literal["512", "1K", "2K", "4K"] = "1K"


class _Safety(_Google):
    category: Annotated[
        str,
        Meta(pattern="^HARM_CATEGORY_(HARASSMENT|HATE_SPEECH|SEXUALLY_EXPLICIT|DANGEROUS_CONTENT|CIVIC_INTEGRITY)$"),
    ]
    threshold: Annotated[str, Meta(pattern="^(BLOCK_(LOW_AND_ABOVE|MEDIUM_AND_ABOVE|ONLY_HIGH|NONE)|OFF)$")]


class Config(_Google):
    """How an answer is generated."""

    response_mime_type: Literal["application/json"] | None = None
    response_schema: dict[str, Any] | None = None
    response_json_schema: Any = None
    response_modalities: tuple[Literal["TEXT", "IMAGE"], ...] = ()
    max_output_tokens: Annotated[int, Meta(ge=1, lt=2**31)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    image_config: _ImageConfig | None = None
    seed: Annotated[int, Meta(ge=-(2**31), lt=2**31)] | None = None
    thinking_config: _Thinking | None = None
    media_resolution: Annotated[str, Meta(pattern="^MEDIA_RESOLUTION_(LOW|MEDIUM|HIGH)$")] | None = None


class _Instruction(_Google):
    parts: Annotated[list[_Part], Meta(min_length=1)]
    role: str = ""


class Generate(_Google):
    """The body of a request to generate content."""

    contents: Annotated[list[_Content], Meta(min_length=1)]
    model: str = ""
    system_instruction: _Instruction | None = None
    generation_config: Config | None = None
    safety_settings: tuple[_Safety, ...] = ()


class _Inlined(_Google):
    request: Any
    metadata: Any = None


class _Inline(_Google):
    requests: Annotated[list[_Inlined], Meta(min_length=1)]


class _Input(_Google):
    file_name: Annotated[str, Meta(min_length=1)] | None = None
    requests: _Inline | None = None

    def __post_init__(self) -> None:
        if (self.file_name is None) == (self.requests is None):
            raise ValueError("exactly one of file_name and requests must be set")


class _Batch(_Google):
    input_config: _Input
    display_name: str = ""
    model: str = ""


class MakeBatch(_Google):
    """The body that makes a batch; its inline requests are looked into one by one, as lines of a file are."""

    batch: _Batch


def check_size(size: int) -> None:
    """Refuse a body that is too large."""
    if size > _LARGEST:
        raise Refused("too-large", f"Request payload size exceeds the limit: {_LARGEST} bytes.")


def check_generate(body: Any) -> None:
    """Refuse a generateContent request the service would not take; its fields go by their JSON names.

    Raises:
        Refused: in the provider's words.
    """
    fitting(Generate, body)
    config = body.get("generationConfig") or {}
    schema, standard = config.get("responseSchema"), config.get("responseJsonSchema")
    if schema is not None and standard is not None:
        raise Refused("bad-request", "Only one of response_schema and response_json_schema may be set.")
    if (schema is not None or standard is not None) and config.get("responseMimeType") != "application/json":
        raise Refused("bad-request", "responseMimeType: a response schema requires 'application/json'")
    for value, problems in ((schema, schema_problems), (standard, json_schema_problems)):
        if value is not None and (problem := _first_problem(orjson.dumps(value), problems)):
            raise Refused("bad-request", problem)


@lru_cache(maxsize=256)
def _first_problem(written: bytes, problems: Callable[[Any], Iterator[str]]) -> str:
    return next(problems(orjson.loads(written)), "")


def schema_problems(schema: Any) -> Iterator[str]:
    """Say what is no Schema message, and where."""
    for named, where, _ in nodes(schema, "response_schema"):
        if not isinstance(named, dict):
            yield f"Invalid value at '{where}', {named!r}"
            continue
        for name in named.keys() - SCHEMA_FIELDS:
            yield f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}': Cannot find field."
        kind = named.get("type", "TYPE_UNSPECIFIED" if "anyOf" not in named else "")
        if kind and kind not in _TYPES:
            yield f"* {where}.type: must be one of {', '.join(sorted(_TYPES))}, not {kind!r}"
        properties, values = named.get("properties") or {}, named.get("enum")
        if bool(properties) != (kind == "OBJECT"):
            yield f"* {where}.properties: non-empty for OBJECT type, and allowed for no other"
        if kind == "ARRAY" and "items" not in named:
            yield f"* {where}.items: missing field."
        if values is not None and (
            kind != "STRING" or not values or not all(isinstance(one, str) and one for one in values)
        ):
            yield f"* {where}.enum: only allowed for STRING type, with non-empty strings"
        for field in ("required", "propertyOrdering"):
            for at, name in enumerate(named.get(field) or ()):
                if name not in properties:
                    yield f"* {where}.{field}[{at}]: property is not defined"
        if named.get("format") and named["format"] not in _FORMATS.get(kind, ()):
            yield f"* {where}.format: only {sorted(_FORMATS.get(kind, ()))} are supported for {kind} type"


def json_schema_problems(schema: Any) -> Iterator[str]:
    """Say what is not within the supported part of JSON schema, and where."""
    for node, where, _ in nodes(schema, "response_json_schema"):
        if not isinstance(node, dict):
            yield f"Invalid JSON schema at '{where}': {node!r} is no schema"
            continue
        for keyword in node.keys() - _JSON_SCHEMA_KEYWORDS:
            yield f"Invalid JSON schema at '{where}': the keyword '{keyword}' is not supported"
        if "$ref" in node:
            if any(not keyword.startswith("$") for keyword in node):
                yield f"Invalid JSON schema at '{where}': nothing but $-keywords may stand beside $ref"
            if node["$ref"] != "#" and str(node["$ref"]).removeprefix("#/$defs/") not in (schema.get("$defs") or {}):
                yield f"Invalid JSON schema at '{where}': {node['$ref']!r} is not defined"
        if any(isinstance(one, bool) or not isinstance(one, str | int | float) for one in node.get("enum") or ()):
            yield f"Invalid JSON schema at '{where}': an enum may list strings and numbers only"
