"""What Gemini takes in a request, field by field, and how it complains."""

import base64
import binascii
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
    fields,
    list_of,
    mapping_of,
    maybe,
    number,
    one_of,
    text,
    whole,
)

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
JSON_SCHEMA_KEYWORDS = frozenset(_KEYWORDS.split())
_TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
_FORMATS = {"STRING": {"enum", "date-time"}, "NUMBER": {"float", "double"}, "INTEGER": {"int32", "int64"}}
_PLACE = "GenerateContentRequest.generation_config.response_schema"


def pick(message: Mapping[str, Any], name: str) -> Any:
    """Read a field by its JSON name or its proto name; the service takes both."""
    return message[name] if name in message else message.get(re.sub(r"([A-Z])", r"_\1", name).lower())


def check_schema(schema: Any) -> None:
    """Refuse what is no Schema message.

    Raises:
        Refused: naming the place, as the provider does.
    """
    problem = _problem(orjson.dumps(schema), True)
    if problem:
        raise Refused("bad-request", problem)


def check_json_schema(schema: Any) -> None:
    """Refuse what is not within the supported part of JSON schema.

    Raises:
        Refused: naming the place.
    """
    problem = _problem(orjson.dumps(schema), False)
    if problem:
        raise Refused("bad-request", problem)


@lru_cache(maxsize=256)
def _problem(written: bytes, own: bool) -> str:
    schema = orjson.loads(written)
    return next(_own(schema, _PLACE) if own else _standard(schema, "response_json_schema", schema), "")


def camel(name: str) -> str:
    """Spell a field's proto name as its JSON name; the service takes both."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _own(node: Any, where: str) -> Iterator[str]:
    if not isinstance(node, dict):
        yield f"Invalid value at '{where}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Schema), {node!r}"
        return
    named = {camel(name): held for name, held in node.items()}
    for name in named:
        if name not in SCHEMA_FIELDS:
            yield f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}': Cannot find field."
    kind = named.get("type", "TYPE_UNSPECIFIED" if "anyOf" not in named else "")
    if kind not in _TYPES and kind:
        yield f"* {where}.type: must be one of {', '.join(sorted(_TYPES))}, not {kind!r}"
    yield from _own_by_type(named, str(kind), where)
    for name, part in (named.get("properties") or {}).items():
        yield from _own(part, f"{where}.properties[{name}]")
    if "items" in named:
        yield from _own(named["items"], f"{where}.items")
    for place, part in enumerate(named.get("anyOf") or ()):
        yield from _own(part, f"{where}.any_of[{place}]")


def _own_by_type(named: Mapping[str, Any], kind: str, where: str) -> Iterator[str]:
    properties = named.get("properties") or {}
    if kind == "OBJECT" and not properties:
        yield f"* {where}.properties: should be non-empty for OBJECT type"
    if properties and kind != "OBJECT":
        yield f"* {where}.properties: only allowed for OBJECT type"
    if kind == "ARRAY" and "items" not in named:
        yield f"* {where}.items: missing field."
    if "enum" in named and (kind != "STRING" or not named["enum"] or not all(map(_is_text, named["enum"]))):
        yield f"* {where}.enum: only allowed for STRING type, with non-empty strings"
    for field in ("required", "propertyOrdering"):
        for place, name in enumerate(named.get(field) or ()):
            if name not in properties:
                yield f"* {where}.{field}[{place}]: property is not defined"
    if named.get("format") and named["format"] not in _FORMATS.get(kind, set()):
        yield f"* {where}.format: only {sorted(_FORMATS.get(kind, set()))} are supported for {kind} type"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _standard(node: Any, where: str, root: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(node, bool):
        return
    if not isinstance(node, dict):
        yield f"Invalid JSON schema at '{where}': {node!r} is no schema"
        return
    for keyword in node:
        if keyword not in JSON_SCHEMA_KEYWORDS:
            yield f"Invalid JSON schema at '{where}': the keyword '{keyword}' is not supported"
    if "$ref" in node:
        if any(not keyword.startswith("$") for keyword in node):
            yield f"Invalid JSON schema at '{where}': nothing but $-keywords may stand beside $ref"
        name = str(node["$ref"]).removeprefix("#/$defs/")
        if node["$ref"] != "#" and name not in (root.get("$defs") or {}):
            yield f"Invalid JSON schema at '{where}': {node['$ref']!r} is not defined"
    if any(isinstance(value, bool) or not isinstance(value, str | int | float) for value in node.get("enum") or ()):
        yield f"Invalid JSON schema at '{where}': an enum may list strings and numbers only"
    for group in ("properties", "$defs"):
        for name, part in (node.get(group) or {}).items():
            yield from _standard(part, f"{where}.{group}.{name}", root)
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            yield from _standard(node[keyword], f"{where}.{keyword}", root)
    for keyword in ("anyOf", "oneOf", "prefixItems"):
        for place, part in enumerate(node.get(keyword) or ()):
            yield from _standard(part, f"{where}.{keyword}[{place}]", root)


_LARGEST = 20 * 1024 * 1024


def _both(known: Mapping[str, Shape]) -> dict[str, Shape]:
    """Let every field be called by its JSON name or its proto name."""
    return {**{re.sub(r"([A-Z])", r"_\1", name).lower(): shape for name, shape in known.items()}, **known}


# Of the letters that are safe in a URL those that are usual; JSON of protocol buffers takes both.
_STANDARD = str.maketrans("-_", "+/")


def _base64(value: Any, path: tuple[str | int, ...]) -> None:
    text()(value, path)
    try:
        base64.b64decode(value.translate(_STANDARD), validate=True)
    except binascii.Error:
        raise Complaint("value", path, "base64", value[:20]) from None


_BLOB = fields(_both({"mimeType": text(least=1), "data": _base64}), required=("data",))
_PART = fields(_both({"text": text(), "inlineData": _BLOB}))
_CONTENT = fields({"role": one_of("user", "model"), "parts": list_of(_PART, least=1)}, required=("parts",))
_THINKING = fields(
    _both(
        {
            "thinkingBudget": whole(-1, 2**31 - 1),
            "thinkingLevel": one_of("THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH"),
        }
    )
)
_THRESHOLDS = ("HARM_BLOCK_THRESHOLD_UNSPECIFIED", "BLOCK_LOW_AND_ABOVE", "BLOCK_MEDIUM_AND_ABOVE")
_SAFETY = fields(
    {
        "category": one_of(
            "HARM_CATEGORY_HARASSMENT",
            "HARM_CATEGORY_HATE_SPEECH",
            "HARM_CATEGORY_SEXUALLY_EXPLICIT",
            "HARM_CATEGORY_DANGEROUS_CONTENT",
            "HARM_CATEGORY_CIVIC_INTEGRITY",
        ),
        "threshold": one_of(*_THRESHOLDS, "BLOCK_ONLY_HIGH", "BLOCK_NONE", "OFF"),
    },
    required=("category", "threshold"),
)

# Fields that this package sends; the real service knows more.
CONFIG_FIELDS: dict[str, Shape] = {
    "responseMimeType": one_of("application/json"),
    "responseSchema": mapping_of(anything),
    "responseJsonSchema": anything,
    "responseModalities": list_of(one_of("TEXT", "IMAGE")),
    "maxOutputTokens": whole(1, 2**31 - 1),
    "temperature": number(0, 2),
    "topP": number(0, 1),
    "imageConfig": fields(_both({"aspectRatio": text(), "imageSize": one_of("512", "1K", "2K", "4K")})),
    "seed": whole(-(2**31), 2**31 - 1),
    "thinkingConfig": _THINKING,
    "mediaResolution": one_of("MEDIA_RESOLUTION_LOW", "MEDIA_RESOLUTION_MEDIUM", "MEDIA_RESOLUTION_HIGH"),
}
REQUEST_FIELDS: dict[str, Shape] = {
    "model": text(),
    "contents": list_of(_CONTENT, least=1),
    "systemInstruction": maybe(fields({"role": text(), "parts": list_of(_PART, least=1)}, required=("parts",))),
    "generationConfig": fields(_both(CONFIG_FIELDS)),
    "safetySettings": list_of(_SAFETY),
}
_REQUEST = fields(_both(REQUEST_FIELDS), required=("contents",))
_INLINED = fields({"request": _REQUEST, "metadata": mapping_of(anything)}, required=("request",))
_INPUT = fields(_both({"fileName": text(least=1), "requests": fields({"requests": list_of(_INLINED, least=1)})}))
_BATCH = fields(
    {"batch": fields(_both({"displayName": text(), "inputConfig": _INPUT, "model": text()}))},
    required=("batch",),
)


def check_generate(body: Any, *, size: int = 0) -> None:
    """Refuse a generateContent request the service would not take.

    Raises:
        Refused: in the provider's words.
    """
    if size > _LARGEST:
        raise Refused("too-large", f"Request payload size exceeds the limit: {_LARGEST} bytes.")
    fitting(_REQUEST, body)
    config = pick(body, "generationConfig") or {}
    schema, standard = pick(config, "responseSchema"), pick(config, "responseJsonSchema")
    if schema is not None and standard is not None:
        raise Refused("bad-request", "Only one of response_schema and response_json_schema may be set.")
    if (schema is not None or standard is not None) and pick(config, "responseMimeType") != "application/json":
        raise Refused(
            "bad-request",
            "* GenerateContentRequest.generation_config.response_mime_type: a response schema requires "
            "'application/json'",
        )
    if schema is not None:
        check_schema(schema)
    if standard is not None:
        check_json_schema(standard)


def check_batch_request(body: Any, *, size: int) -> None:
    """Refuse the making of a batch; its inline requests are looked into one by one, as lines of a file are."""
    if size > _LARGEST:
        raise Refused("too-large", f"Request payload size exceeds the limit: {_LARGEST} bytes.")
    fitting(_BATCH, body)
    source = pick(body["batch"], "inputConfig") or {}
    if (pick(source, "fileName") is None) == (source.get("requests") is None):
        raise Refused("bad-request", "Exactly one of file_name and requests must be set in batch.input_config.")


def fitting(shape: Shape, body: Any) -> None:
    """Hold a body against a shape; say in Google's words what does not fit.

    Raises:
        Refused: something does not.
    """
    try:
        shape(body, ())
    except Complaint as complaint:
        *outer, last = complaint.path or ("request",)
        where = _spelled(outer)
        match complaint.kind:
            case "unknown":
                at = f" at '{where}'" if where else ""
                message = f'Invalid JSON payload received. Unknown name "{last}"{at}: Cannot find field.'
            case "missing":
                message = f"* GenerateContentRequest.{_spelled(complaint.path)}: {last} is not specified"
            case _:
                found = str(complaint.found)[:80]
                message = f"Invalid value at '{_spelled(complaint.path)}' ({complaint.expected}), {found!r}"
        raise Refused("bad-request", message) from None


def _spelled(path: Any) -> str:
    written = ""
    for step in path:
        name = re.sub(r"([A-Z])", r"_\1", str(step)).lower()
        written += f"[{name}]" if isinstance(step, int) else (f".{name}" if written else name)
    return written
