"""A struct or a pydantic model becomes a shape; what no language model can be asked for is refused here, by field."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from culturekit.core.errors import UsageError
from culturekit.llm.reading.shape import (
    Choice,
    Field,
    Fields,
    Flag,
    Items,
    Node,
    Nothing,
    Number,
    OneOf,
    OpenMap,
    Recursion,
    Shape,
    Text,
)

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
IGNORED = frozenset({"$defs", "title", "description", "examples", "default", "discriminator"})
DEFINITIONS = "#/$defs/"

JsonSchema = Mapping[str, Any]

SHAPES: dict[type[object], Shape] = {}


def shape_of(reply_type: type[object]) -> Shape:
    """Read the shape of a msgspec struct, or of a pydantic model, once.

    Raises:
        UsageError: a part of the type is nothing that can be asked for; the message names the field.
    """
    if reply_type not in SHAPES:
        SHAPES[reply_type] = read_shape(reply_type)
    return SHAPES[reply_type]


def read_shape(reply_type: type[object]) -> Shape:
    """Read the shape from the JSON Schema that the type's own library writes."""
    reader = SchemaReader(reply_type.__name__, json_schema(reply_type))
    root = reader.read(reader.schema, ())
    if not isinstance(root, Fields):
        raise reader.refuse((), "a reply is an object with named fields", "Make it a struct.")
    return Shape(root, reader.recursive)


def json_schema(reply_type: type[object]) -> JsonSchema:
    """Let the library that owns a type describe it."""
    of_pydantic = getattr(reply_type, "model_json_schema", None)
    if of_pydantic is not None:
        described: JsonSchema = of_pydantic()
        return described
    try:
        return msgspec.json.schema(reply_type)
    except KeyError as error:
        raise UsageError(
            "two different types in it have the same name", where=reply_type.__name__, hint="Rename one of them."
        ) from error
    except (TypeError, NotImplementedError) as error:
        raise UsageError(
            f"this type has no JSON Schema: {error}",
            where=reply_type.__name__,
            expected="a msgspec struct, or a pydantic model",
            hint="Use texts, numbers, booleans, literals, lists and structs of them.",
        ) from error


class SchemaReader:
    """Reads one JSON Schema as msgspec and pydantic write it."""

    def __init__(self, name: str, schema: JsonSchema) -> None:
        """Start at the root, with nothing open."""
        self.name = name
        self.schema = schema
        self.definitions: Mapping[str, JsonSchema] = schema.get("$defs", {})
        self.open: list[str] = []
        self.recursive: dict[str, Fields] = {}
        self.met_again: set[str] = set()

    def refuse(self, path: tuple[str, ...], problem: str, hint: str) -> UsageError:
        """Say which field cannot be asked for, and what to do."""
        return UsageError(problem, where="".join((self.name, *path)), hint=hint)

    def read(self, schema: JsonSchema, path: tuple[str, ...]) -> Node:
        """Read a schema and all below it."""
        if "$ref" in schema:
            return self.follow(schema["$ref"].removeprefix(DEFINITIONS), path)
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            return self.union(options, schema.get("discriminator", {}).get("propertyName", ""), path)
        if "enum" in schema or "const" in schema:
            return self.choice(schema.get("enum", [schema.get("const")]), path)
        match schema.get("type"):
            case "string":
                return self.text(schema, path)
            case "integer" | "number":
                return self.number(schema, path)
            case "boolean":
                return self.only(schema, path, Flag())
            case "null":
                return self.only(schema, path, Nothing())
            case "array":
                return self.items(schema, path)
            case "object":
                return self.object(schema, path)
        raise self.refuse(path, "a value of any kind cannot be asked for", "Say which kind it is.")

    def only(self, schema: JsonSchema, path: tuple[str, ...], node: Node, *words: str) -> Node:
        """Accept a node if its schema says nothing beyond the words that were read."""
        unread = sorted(set(schema) - IGNORED - {"type", *words})
        if unread:
            raise self.refuse(path, f"{unread[0]} cannot be asked for", "Leave it out, and check it after the reply.")
        return node

    def follow(self, name: str, path: tuple[str, ...]) -> Node:
        """Read a definition; one that is being read already contains itself."""
        if name in self.open:
            self.met_again.add(name)
            return Recursion(name)
        self.open.append(name)
        node = self.read(self.definitions[name], path)
        self.open.pop()
        if name in self.met_again and isinstance(node, Fields):
            self.recursive[name] = node
        return node

    def union(self, schemas: list[JsonSchema], tag: str, path: tuple[str, ...]) -> Node:
        """Read a value of several kinds; objects among them need a key that tells them apart."""
        options: list[Node] = []
        for schema in schemas:
            node = self.read(schema, path)
            options += node.options if isinstance(node, OneOf) else [node]
            tag = node.tag if isinstance(node, OneOf) and node.tag else tag
        objects = [node for node in options if isinstance(node, Fields | Recursion)]
        if len(objects) > 1 and not tag:
            raise self.refuse(path, "objects of several kinds cannot be told apart", "Give each a tag of its own.")
        if sum(isinstance(node, Items) for node in options) > 1:
            raise self.refuse(path, "lists of several kinds cannot be told apart", "Make it one list.")
        if any(isinstance(node, OpenMap) for node in options) and len(options) > 2:
            raise self.refuse(path, "an open map cannot be told from an object", "Make it a list of structs.")
        return OneOf(tuple(options), tag if len(objects) > 1 else "")

    def choice(self, values: list[object], path: tuple[str, ...]) -> Node:
        """Read some values; null among them is a kind of its own."""
        chosen = tuple(value for value in values if isinstance(value, str | int) and not isinstance(value, bool))
        others = [value for value in values if value is not None and value not in chosen]
        if others or any(isinstance(value, bool) for value in values) or not chosen:
            raise self.refuse(path, "a choice is among texts or whole numbers", "Name the values as texts.")
        return OneOf((Choice(chosen), Nothing())) if None in values else Choice(chosen)

    def text(self, schema: JsonSchema, path: tuple[str, ...]) -> Node:
        """Read a text."""
        node = Text(
            schema.get("minLength"), schema.get("maxLength"), schema.get("pattern", ""), schema.get("format", "")
        )
        return self.only(schema, path, node, "minLength", "maxLength", "pattern", "format")

    def number(self, schema: JsonSchema, path: tuple[str, ...]) -> Node:
        """Read a number."""
        words = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
        return self.only(schema, path, Number(schema["type"] == "integer", *map(schema.get, words)), *words)

    def items(self, schema: JsonSchema, path: tuple[str, ...]) -> Node:
        """Read a list of values of one kind."""
        if "prefixItems" in schema or not isinstance(schema.get("items"), Mapping):
            raise self.refuse(path, "a list whose places differ cannot be asked for", "Make it a struct.")
        item = self.read(schema["items"], (*path, "[]"))
        node = Items(item, schema.get("minItems"), schema.get("maxItems"), schema.get("uniqueItems", False))
        return self.only(schema, path, node, "items", "minItems", "maxItems", "uniqueItems")

    def object(self, schema: JsonSchema, path: tuple[str, ...]) -> Node:
        """Read an object with known keys, or an open map."""
        properties: Mapping[str, JsonSchema] = schema.get("properties", {})
        rest = schema.get("additionalProperties", False)
        if not properties and rest is not False:
            value = self.read(rest if isinstance(rest, Mapping) else {}, (*path, ".*"))
            return self.only(schema, path, OpenMap(value), "additionalProperties")
        if not properties or isinstance(rest, Mapping):
            raise self.refuse(path, "an object has known keys, or unknown ones, not none or both", "Name its fields.")
        required = schema.get("required", ())
        fields = tuple(self.field(key, below, key in required, path) for key, below in properties.items())
        node = Fields(schema.get("title", self.name), fields, {field.name: field for field in fields})
        return self.only(schema, path, node, "properties", "required", "additionalProperties")

    def field(self, name: str, schema: JsonSchema, required: bool, path: tuple[str, ...]) -> Field:
        """Read a key of an object."""
        here = (*path, f".{name}")
        if not NAME.fullmatch(name):
            raise self.refuse(here, "a key is made of letters, digits and underscores, at most 64", "Rename it.")
        return Field(name, self.read(schema, here), required, schema.get("description", ""))
