"""OpenAI's rules for a schema in strict mode."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

from tests.llm.server.error_replies import Refused

__all__ = ["check_strict_schema"]

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
