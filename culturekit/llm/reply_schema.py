"""Reply types compiled to the schemas that providers and local servers take.

What a model is asked for is a type, a `msgspec.Struct`:

```python
from typing import Annotated, Literal

import msgspec

from culturekit.llm.reply_schema import schema_of


class Judged(msgspec.Struct):
    id: str
    verdict: Literal["keep", "remove", "review"]
    reason: Annotated[str, msgspec.Meta(max_length=200, description="in one sentence")]


schema_of(Judged, "openai")
```

It compiles for six targets, the same bytes in every process: `openai`, `vllm`, `llamacpp` and `ollama` take it as
`response_format`, `google-json` as `response_json_schema` (online), `google-schema` as `response_schema` (batches).
What a target cannot take is refused before anything is sent, with field, target and way out.

- All take texts, numbers, booleans, literals, enums, lists, structs, `None`, unions of structs with a tag, and nothing
  else; keys are letters, digits and underscores.
- A size that a target does not enforce is said in the field's description, and checked in the reply.
- A pattern is anchored with `^` and `$`, with classes written out (`[0-9]`, not a shorthand).
- `description` is part of a reply's key; docstrings are not.

`read_reply(request, text)` gives a value, or a `ParseFailure` with a code, the field, and `raw`; it never raises.
Limits are a million characters, 32 levels, 63 bits, 200 white space characters in a row. `Request.allowed`
(`verdicts[].id`) holds ids to those given, each once.
One code fence around one object is taken off: the row's detail is `fenced`, the manifest counts it, `raw` keeps it.
Text around the object is an error always.

A reply that cannot be read is followed by one more request, with the same data, a key of its own, nothing of the first
reply, and after the instructions:

```text
An earlier reply to this could not be used.
Error missing-key: A key that was asked for is missing.
Reply again, with nothing but one JSON object of this shape:
{"id": text, "verdict": "keep" | "remove" | "review", "reason": text}
```
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NoReturn, TypeAlias, get_args

import msgspec

from culturekit.core.errors import UsageError

Json: TypeAlias = dict[str, Any]
_ReplyType: TypeAlias = Any  # a msgspec struct; mypy takes no type for hashable
Target: TypeAlias = Literal["openai", "google-json", "google-schema", "vllm", "llamacpp", "ollama"]
TARGETS: tuple[Target, ...] = get_args(Target)

LENGTHS = frozenset({"minLength", "maxLength"})
COUNTS = frozenset({"minItems", "maxItems"})
BOUNDS = frozenset({"minimum", "maximum"})
PATTERN = frozenset({"pattern"})
_OPEN_BOUNDS = frozenset({"exclusiveMinimum", "exclusiveMaximum"})
_TIMES = frozenset({"date", "time", "date-time"})
_TEXTS = _TIMES | {"email", "hostname", "ipv4", "ipv6", "uuid", "duration"}

LIMITS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matches the regular expression {}",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "uniqueItems": "no item twice",
}
_NUMBER_WORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_WORDS = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "integer": _NUMBER_WORDS,
    "number": _NUMBER_WORDS,
    "boolean": (),
    "null": (),
    "array": ("items", "minItems", "maxItems", "uniqueItems"),
    "object": ("properties", "required", "additionalProperties"),
}
_IGNORED = frozenset({"type", "$defs", "title", "description", "examples", "default"})
_DEFINITIONS = "#/$defs/"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

_LONG_CHOICE = 250
_LONG_CHOICE_CHARACTERS = 15_000
# Anchored, without classes such as `\d`, look-around and back references: local grammars break on these silently.
_PORTABLE_PATTERN = re.compile(r"\^(?:[^\\()]|\\[.\\/+*?()\[\]{}|^$-]|\((?!\?)|\))*\$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Abilities:
    """What a target enforces (`words`), what it accepts at all, and how much of it.

    A limit that a target does not enforce is told to the model in the description of the field, and checked when the
    reply is read. What concerns the form of the reply is refused instead.
    """

    words: frozenset[str]
    formats: frozenset[str]
    recursion: bool = False
    open_maps: bool = False
    optional: bool = True
    whole_choices: bool = True
    bounds_on_fractions: bool = True
    depth: int = 10
    properties: int = 1000
    choices: int = 1000
    characters: int = 120_000


# llama.cpp writes a grammar from the schema; Ollama has it inside.
_GRAMMAR = _Abilities(
    LENGTHS | COUNTS | BOUNDS | _OPEN_BOUNDS | PATTERN,
    _TIMES | {"uuid"},
    recursion=True,
    open_maps=True,
    bounds_on_fractions=False,
)
ABILITIES: Mapping[Target, _Abilities] = {
    "openai": _Abilities(
        COUNTS | BOUNDS | _OPEN_BOUNDS | PATTERN | {"multipleOf"},
        _TEXTS,
        recursion=True,
        optional=False,
        properties=5000,
    ),
    "google-json": _Abilities(COUNTS | BOUNDS, _TIMES, open_maps=True, properties=500, choices=500),
    "google-schema": _Abilities(
        COUNTS | BOUNDS, frozenset({"date-time"}), whole_choices=False, properties=500, choices=500
    ),
    "vllm": _Abilities(LENGTHS | COUNTS | BOUNDS | _OPEN_BOUNDS | PATTERN, _TEXTS, recursion=True, open_maps=True),
    "llamacpp": _GRAMMAR,
    "ollama": _GRAMMAR,
}


def schema_of(reply_type: _ReplyType, target: Target) -> Json:
    """Compile a reply type for a target.

    Raises:
        UsageError: the target cannot take it; the message names the field and what to do.
    """
    schema: Json = msgspec.json.decode(_compiled(reply_type, target))  # whoever gets it may change it
    return schema


def response_format(reply_type: _ReplyType, target: Target) -> Json:
    """Write the `response_format` of a chat completion, which OpenAI and its likes on one's own machine all read."""
    if target in {"google-json", "google-schema"}:
        raise UsageError("Google takes a schema, not a response format", found=target, hint="Use schema_of.")
    schema = {"name": _name_of(reply_type)[:64], "strict": True, "schema": schema_of(reply_type, target)}
    return {"type": "json_schema", "json_schema": schema}


@cache
def _compiled(reply_type: _ReplyType, target: Target) -> bytes:
    """Check a type against a target, and write its schema."""
    if target not in ABILITIES:
        raise UsageError("there is no such schema target", expected=" or ".join(TARGETS), found=repr(target))
    shape = shape_of(reply_type)
    _check_abilities(shape.root, _name_of(reply_type), target)
    schema = _written(shape.root, target)
    if shape.recursive:
        schema["$defs"] = {name: _written(node, target) for name, node in sorted(shape.recursive.items())}
    return msgspec.json.encode(schema)


@dataclass(frozen=True, slots=True)
class Shape:
    """A reply type in the few words of JSON Schema that can be asked for, definitions written out.

    `recursive` are the objects that contain themselves, by the name that a `$ref` gives.
    """

    root: Json
    recursive: Mapping[str, Json]


@cache
def shape_of(reply_type: _ReplyType) -> Shape:
    """Read the shape of a msgspec struct from the JSON Schema that msgspec writes, once."""
    name = _name_of(reply_type)
    try:
        schema = msgspec.json.schema(reply_type)
    except KeyError as error:
        raise UsageError(
            "two different types in it have the same name", where=name, hint="Rename one of them."
        ) from error
    except (TypeError, NotImplementedError) as error:
        raise UsageError(
            f"this type has no JSON Schema: {error}",
            where=name,
            expected="a msgspec struct",
            hint="Use texts, numbers, booleans, literals, lists and structs of them.",
        ) from error
    reader = _SchemaReader(schema.get("$defs", {}))
    root = reader.read(schema, name)
    if "properties" not in root:
        _refuse(name, "a reply is an object with named fields", "Make it a struct.")
    return Shape(root, reader.recursive)


def _name_of(reply_type: _ReplyType) -> str:
    return str(getattr(reply_type, "__name__", reply_type))


def _refuse(path: str, problem: str, hint: str) -> NoReturn:
    raise UsageError(problem, where=path, hint=hint)


class _SchemaReader:
    """Reads one JSON Schema as msgspec writes it."""

    def __init__(self, definitions: Mapping[str, Json]) -> None:
        self.definitions = definitions
        self.open: list[str] = []
        self.recursive: dict[str, Json] = {}
        self.met_again: set[str] = set()

    def read(self, schema: Json, path: str) -> Json:
        if "$ref" in schema:
            return self.follow(schema["$ref"].removeprefix(_DEFINITIONS), path)
        if "anyOf" in schema:
            options = [self.read(option, path) for option in schema["anyOf"]]
            return {"anyOf": [inner for option in options for inner in option.get("anyOf", [option])]}
        if "enum" in schema:
            return self.choice(schema["enum"], path)
        kind = schema.get("type")
        if kind not in _WORDS:
            _refuse(path, "a value of any kind cannot be asked for", "Say which kind it is.")
        if kind == "array" and not isinstance(schema.get("items"), dict):
            _refuse(path, "a list whose places differ cannot be asked for", "Make it a struct.")
        if unread := sorted(set(schema) - _IGNORED - {*_WORDS[kind]}):
            _refuse(path, f"{unread[0]} cannot be asked for", "Leave it out, and check it after the reply.")
        if kind == "object":
            return self.object(schema, path)
        limits = {word: schema[word] for word in _WORDS[kind] if word in schema and word != "items"}
        if kind == "array":
            return {"type": kind, "items": self.read(schema["items"], f"{path}[]"), **limits}
        if kind == "integer":  # its open bounds are closed
            least, most = limits.get("exclusiveMinimum"), limits.get("exclusiveMaximum")
            low = limits.get("minimum") if least is None else least + 1
            high = limits.get("maximum") if most is None else most - 1
            closed = {"minimum": low, "maximum": high, "multipleOf": limits.get("multipleOf")}
            limits = {word: value for word, value in closed.items() if value is not None}
        return {"type": kind, **limits}

    def follow(self, name: str, path: str) -> Json:
        """Read a definition; one that is being read already contains itself."""
        if name in self.open:
            self.met_again.add(name)
            return {"$ref": f"{_DEFINITIONS}{name}"}
        self.open.append(name)
        node = self.read(self.definitions[name], path)
        self.open.pop()
        if name in self.met_again:
            self.recursive[name] = node
        return node

    def choice(self, values: list[object], path: str) -> Json:
        """Read some values; null among them is a kind of its own."""
        chosen = [value for value in values if isinstance(value, str | int) and not isinstance(value, bool)]
        if not chosen or any(value is not None and value not in chosen for value in values):
            _refuse(path, "a choice is among texts or whole numbers", "Name the values as texts.")
        kinds = sorted({"string" if isinstance(value, str) else "integer" for value in chosen}, reverse=True)
        choice = {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": chosen}
        return {"anyOf": [choice, {"type": "null"}]} if None in values else choice

    def object(self, schema: Json, path: str) -> Json:
        properties, rest = schema.get("properties", {}), schema.get("additionalProperties", False)
        if not properties and rest is not False:
            return {"type": "object", "additionalProperties": self.read(rest if rest is not True else {}, f"{path}.*")}
        if not properties:
            _refuse(path, "an object has known keys, or unknown ones, not none or both", "Name its fields.")
        fields = {}
        for key, below in properties.items():
            inner = f"{path}.{key}"
            if not _NAME.fullmatch(key):
                _refuse(inner, "a key is made of letters, digits and underscores, at most 64", "Rename it.")
            described = {"description": below["description"]} if below.get("description") else {}
            fields[key] = self.read(below, inner) | described
        required = [key for key in fields if key in schema.get("required", ())]
        return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


def _written(node: Json, target: Target) -> Json:
    """Write a node and all below it in the words that a target knows; its description is left to the field."""
    abilities, openapi = ABILITIES[target], target == "google-schema"
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    if "anyOf" in node:
        options = node["anyOf"]
        if openapi and {"type": "null"} in options:
            rest = [option for option in options if option != {"type": "null"}]
            return {**_written(rest[0] if len(rest) == 1 else {"anyOf": rest}, target), "nullable": True}
        return {"anyOf": [_written(option, target) for option in options]}
    schema = {
        word: value
        for word, value in node.items()
        if word != "description" and (word not in LIMITS or _enforces(abilities, word, node))
    }
    if "items" in node:
        schema["items"] = _written(node["items"], target)
    if "properties" in node:
        schema["properties"] = {key: _written_field(below, target) for key, below in node["properties"].items()}
        if openapi or target == "google-json":
            schema["propertyOrdering"] = list(node["properties"])
    elif node.get("additionalProperties"):
        schema["additionalProperties"] = _written(node["additionalProperties"], target)
    if openapi:  # the subset of OpenAPI: types in capitals, no word about further keys
        schema.pop("additionalProperties", None)
        schema["type"] = node["type"].upper()
        if "enum" in node:
            schema["format"] = "enum"
    return schema


def _written_field(node: Json, target: Target) -> Json:
    """Write what is asked for under a key; limits that the target does not enforce go into the description."""
    schema = _written(node, target)
    description = "; ".join((*filter(None, [node.get("description")]), *_limits_in_words(node, ABILITIES[target])))
    if "$ref" in schema and description:
        return {"anyOf": [schema], "description": description}
    return {**schema, "description": description} if description else schema


def _limits_in_words(node: Json, abilities: _Abilities) -> Iterator[str]:
    """Yield the limits that a target does not enforce, of a value and of the items of a list."""
    for word, text in LIMITS.items():
        if word in node and not _enforces(abilities, word, node):
            yield text.format(node[word])
    for option in node.get("anyOf", ()):
        yield from _limits_in_words(option, abilities)
    for word, name in (("items", "each"), ("additionalProperties", "each value")):
        if node.get(word):
            yield from (f"{name}: {text}" for text in _limits_in_words(node[word], abilities))


def _enforces(abilities: _Abilities, word: str, node: Json) -> bool:
    return word in abilities.words and (abilities.bounds_on_fractions or node["type"] != "number")


def _check_abilities(root: Json, name: str, target: Target) -> None:
    """Reject what a target cannot take, before a request is paid for."""
    abilities = ABILITIES[target]
    nodes = list(_walk(root, name, 1))
    found = ((path, _problem(node, depth, abilities)) for node, path, depth in nodes)
    path, problem = next(((path, problem) for path, problem in found if problem), (name, None))
    problem = problem or _oversize([node for node, _, _ in nodes], abilities)
    if problem:
        _refuse(path, f"the schema target {target} cannot take this: {problem[0]}", problem[1])


def _walk(node: Json, path: str, depth: int) -> Iterator[tuple[Json, str, int]]:
    """Yield every node with its path, and in how many objects and lists it is."""
    yield node, path, depth
    below = [(f".{key}", part) for key, part in node.get("properties", {}).items()]
    below += [("", option) for option in node.get("anyOf", ())]
    below += [(step, node[word]) for word, step in (("items", "[]"), ("additionalProperties", ".*")) if node.get(word)]
    for step, part in below:
        yield from _walk(part, path + step, depth + (node.get("type") in ("object", "array")))


def _problem(node: Json, depth: int, abilities: _Abilities) -> tuple[str, str] | None:
    """Find what is wrong with one node for a target, and the way out."""
    if node.get("type") in ("object", "array") and depth > abilities.depth:
        return f"nested more than {abilities.depth} deep", "Make the reply flatter."
    if "$ref" in node and not abilities.recursion:
        return "an object within itself", "Write the levels out, or ask for a flat list with the id of the parent."
    if node.get("additionalProperties") and not abilities.open_maps:
        return "an object whose keys are not known", "Ask for a list of structs with a key and a value."
    if "properties" in node and not abilities.optional:
        for key in node["properties"]:
            if key not in node["required"]:
                return f"the field {key} has a default", f"Make it `{key}: ... | None` without a default."
    if values := node.get("enum"):
        if not abilities.whole_choices and not all(isinstance(value, str) for value in values):
            return "a choice among numbers", "Name the values as texts."
        if "" in values:
            return "an empty text as a choice", "Give it a name such as none."
        characters = sum(len(str(value)) for value in values)
        if len(values) > _LONG_CHOICE and characters > _LONG_CHOICE_CHARACTERS:
            return f"a choice with {characters:,} characters of values", "Use short ids."
    if "format" in node and node["format"] not in abilities.formats:
        formats = ", ".join(sorted(abilities.formats))
        return f"the format {node['format']}, of {formats}", "Ask for a plain text, and read it afterwards."
    if "pattern" in node and not _PORTABLE_PATTERN.fullmatch(node["pattern"]):
        way_out = "Anchor it with ^ and $, and write classes out: [0-9] for a digit."
        return "a pattern that servers read differently", way_out
    return None


def _oversize(nodes: list[Json], abilities: _Abilities) -> tuple[str, str] | None:
    """Check whether all of it together is too much for a target."""
    keys = [key for node in nodes for key in node.get("properties", ())]
    values = [str(value) for node in nodes for value in node.get("enum", ())]
    sizes = (
        (len(keys), "properties", abilities.properties),
        (len(values), "values to choose from", abilities.choices),
        (sum(map(len, [*keys, *values])), "characters of names and values", abilities.characters),
    )
    found = next((f"{size:,} {what}, of at most {most:,}" for size, what, most in sizes if size > most), "")
    return (found, "Ask for less in one reply.") if found else None


def expected_shape(node: Json) -> str:
    """Write a shape as people would sketch it: `{"id": text, "verdict": "keep" | "remove"}`."""
    if "$ref" in node:
        return f"{node['$ref'].removeprefix(_DEFINITIONS)} again"
    if "anyOf" in node:
        return " | ".join(map(expected_shape, node["anyOf"]))
    if "enum" in node:
        return " | ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in node["enum"])
    if "properties" in node:
        return "{" + ", ".join(f'"{key}": {expected_shape(below)}' for key, below in node["properties"].items()) + "}"
    match node["type"]:
        case "object":
            return f"{{text: {expected_shape(node['additionalProperties'])}, ...}}"
        case "array":
            return f"[{expected_shape(node['items'])}, ...]"
        case "string":
            return str(node.get("format", "text"))
        case kind:
            names = {"integer": "whole number", "number": "number", "boolean": "true | false", "null": "null"}
            return names[kind]
