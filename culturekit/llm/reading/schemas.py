"""A reply type compiled to the schema that a provider or a local server takes; the same bytes every time.

What a target cannot take is refused here, before anything is sent.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from culturekit.core.errors import UsageError
from culturekit.llm.reading.schema_checks import (
    ABILITIES,
    TARGETS,
    WORDS,
    Abilities,
    Target,
    check_abilities,
    limits_of,
)
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
from culturekit.llm.reading.shape_reading import shape_of

Json = dict[str, Any]

COMPILED: dict[tuple[type[object], Target], bytes] = {}


def schema_of(reply_type: type[object], target: Target) -> Json:
    """Compile a reply type for a target.

    Raises:
        UsageError: the target cannot take it; the message names the field and what to do.
    """
    schema: Json = msgspec.json.decode(compiled(reply_type, target))
    return schema


def check_shape(reply_type: type[object], *targets: Target) -> None:
    """Make sure that a reply of a type can be asked for at all, and from each of the targets named."""
    shape_of(reply_type)
    for target in targets:
        compiled(reply_type, target)


def response_format(reply_type: type[object], target: Target) -> Json:
    """Write the `response_format` of a chat completion, which OpenAI and its likes on one's own machine all read."""
    if target in {"google-json", "google-schema"}:
        raise UsageError("Google takes a schema, not a response format", found=target, hint="Use schema_of.")
    name = reply_type.__name__[:64]
    return {
        "type": "json_schema",
        "json_schema": {"name": name, "strict": True, "schema": schema_of(reply_type, target)},
    }


def compiled(reply_type: type[object], target: Target) -> bytes:
    """Compile once; the bytes cannot be changed by whoever gets them."""
    if (reply_type, target) not in COMPILED:
        COMPILED[reply_type, target] = compile_for(reply_type, target)
    return COMPILED[reply_type, target]


def compile_for(reply_type: type[object], target: Target) -> bytes:
    """Check a type against a target, and write its schema."""
    if target not in ABILITIES:
        raise UsageError("there is no such schema target", expected=" or ".join(TARGETS), found=repr(target))
    shape = shape_of(reply_type)
    check_abilities(shape, reply_type.__name__, target)
    writer = OpenApiWriter(ABILITIES[target]) if target == "google-schema" else SchemaWriter(ABILITIES[target])
    writer.ordered = target in {"google-json", "google-schema"}
    return msgspec.json.encode(writer.document(shape))


class SchemaWriter:
    """Writes JSON Schema in the words a target knows."""

    ordered = False

    def __init__(self, abilities: Abilities) -> None:
        """Know what the target can do."""
        self.abilities = abilities

    def document(self, shape: Shape) -> Json:
        """Write the whole schema."""
        schema = self.write(shape.root)
        if shape.recursive:
            schema["$defs"] = {name: self.write(node) for name, node in sorted(shape.recursive.items())}
        return schema

    def write(self, node: Node) -> Json:
        """Write a node and all below it."""
        match node:
            case Text() | Number() | Flag() | Nothing():
                kind = {Text: "string", Flag: "boolean", Nothing: "null"}.get(type(node), "number")
                whole = isinstance(node, Number) and node.whole
                limits = {word: value for word, value in limits_of(node) if self.enforces(word, node)}
                return {"type": "integer" if whole else kind, **limits}
            case Choice():
                return {"type": self.kind_of_choice(node), "enum": list(node.values)}
            case Items():
                limits = {word: value for word, value in limits_of(node) if self.enforces(word, node)}
                return {"type": "array", "items": self.write(node.item), **limits}
            case OpenMap():
                return {"type": "object", "additionalProperties": self.write(node.value)}
            case Fields():
                return self.object(node)
            case OneOf():
                return {"anyOf": [self.write(option) for option in node.options]}
            case Recursion():
                return {"$ref": f"#/$defs/{node.name}"}

    def kind_of_choice(self, node: Choice) -> str | list[str]:
        """Name the type of the values, or both where there are texts and numbers."""
        kinds = sorted({"string" if isinstance(value, str) else "integer" for value in node.values}, reverse=True)
        return kinds[0] if len(kinds) == 1 else kinds

    def object(self, node: Fields) -> Json:
        """Write an object that has its fields and no others."""
        schema: Json = {
            "type": "object",
            "properties": {field.name: self.field(field) for field in node.fields},
            "required": [field.name for field in node.fields if field.required],
            "additionalProperties": False,
        }
        if self.ordered:
            schema["propertyOrdering"] = [field.name for field in node.fields]
        return schema

    def field(self, field: Field) -> Json:
        """Write what stands under a key; what the target does not enforce is said in words."""
        said = "; ".join((*filter(None, [field.description]), *self.in_words(field.node)))
        schema = self.write(field.node)
        if "$ref" in schema and said:
            return {"anyOf": [schema], "description": said}
        return {**schema, "description": said} if said else schema

    def in_words(self, node: Node) -> Iterator[str]:
        """Tell the limits that the target does not enforce, of a value and of the items of a list."""
        for word, value in limits_of(node):
            if not self.enforces(word, node):
                yield WORDS[word].format(value)
        if isinstance(node, OneOf):
            for option in node.options:
                yield from self.in_words(option)
        elif isinstance(node, Items):
            yield from (f"each: {text}" for text in self.in_words(node.item))
        elif isinstance(node, OpenMap):
            yield from (f"each value: {text}" for text in self.in_words(node.value))

    def enforces(self, word: str, node: Node) -> bool:
        """Tell whether a target holds a model to a limit."""
        fraction = isinstance(node, Number) and not node.whole
        return word == "format" or (
            word in self.abilities.words and (self.abilities.bounds_on_fractions or not fraction)
        )


class OpenApiWriter(SchemaWriter):
    """Writes the subset of OpenAPI that Google's `response_schema` takes."""

    def write(self, node: Node) -> Json:
        """Write a node: types in capitals, null as a property of the value, no word about further keys."""
        if isinstance(node, OneOf) and any(isinstance(option, Nothing) for option in node.options):
            rest = tuple(option for option in node.options if not isinstance(option, Nothing))
            return {**self.write(rest[0] if len(rest) == 1 else OneOf(rest, node.tag)), "nullable": True}
        schema = super().write(node)
        schema.pop("additionalProperties", None)
        if "type" in schema:
            schema["type"] = schema["type"].upper()
        if isinstance(node, Choice):
            schema["format"] = "enum"
        return schema
