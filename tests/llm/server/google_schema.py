"""The two kinds of schema Gemini takes: its own Schema message, and a subset of JSON schema."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

from tests.llm.server.error_replies import Refused

__all__ = ["JSON_SCHEMA_KEYWORDS", "SCHEMA_FIELDS", "check_json_schema", "check_schema"]

SCHEMA_FIELDS = frozenset(
    [
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "maxItems",
        "minItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "example",
        "anyOf",
        "propertyOrdering",
        "default",
        "items",
        "minimum",
        "maximum",
    ]
)
"""The fields of the service's Schema message, by their JSON names."""

JSON_SCHEMA_KEYWORDS = frozenset(
    [
        "$id",
        "$defs",
        "$ref",
        "$anchor",
        "type",
        "format",
        "title",
        "description",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "anyOf",
        "oneOf",
        "properties",
        "additionalProperties",
        "required",
        "propertyOrdering",
    ]
)
"""The keywords that `responseJsonSchema` supports; others would be ignored without a word, so here they are refused."""

_TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
_FORMATS = {
    "STRING": {"enum", "date-time"},
    "NUMBER": {"float", "double"},
    "INTEGER": {"int32", "int64"},
}
_PLACE = "GenerateContentRequest.generation_config.response_schema"


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
