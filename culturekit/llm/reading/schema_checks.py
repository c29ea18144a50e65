"""A shape held against what a target can take, before a request is paid for."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from culturekit.core.errors import UsageError
from culturekit.llm.reading.shape import (
    Choice,
    Fields,
    Items,
    Node,
    Number,
    OneOf,
    OpenMap,
    Recursion,
    Shape,
    Text,
    children,
)

WORDS = {
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


def limits_of(node: Node) -> Iterator[tuple[str, object]]:
    """List what limits a value, in the words of JSON Schema; open bounds of whole numbers are closed ones."""
    match node:
        case Text():
            pairs: list[tuple[str, object]] = [("minLength", node.minimum), ("maxLength", node.maximum)]
            pairs += [("pattern", node.pattern or None), ("format", node.format or None)]
        case Number(whole=True):
            least = [node.minimum, None if node.above is None else node.above + 1]
            most = [node.maximum, None if node.below is None else node.below - 1]
            pairs = [("minimum", max((bound for bound in least if bound is not None), default=None))]
            pairs += [("maximum", min((bound for bound in most if bound is not None), default=None))]
            pairs += [("multipleOf", node.step)]
        case Number():
            pairs = [("minimum", node.minimum), ("maximum", node.maximum)]
            pairs += [("exclusiveMinimum", node.above), ("exclusiveMaximum", node.below), ("multipleOf", node.step)]
        case Items():
            pairs = [("minItems", node.minimum), ("maxItems", node.maximum), ("uniqueItems", node.distinct or None)]
        case _:
            pairs = []
    yield from ((word, value) for word, value in pairs if value is not None)


Target: TypeAlias = Literal["openai", "google-json", "google-schema", "vllm", "llamacpp", "ollama"]

TARGETS: tuple[Target, ...] = ("openai", "google-json", "google-schema", "vllm", "llamacpp", "ollama")

LENGTHS = frozenset({"minLength", "maxLength"})
COUNTS = frozenset({"minItems", "maxItems"})
BOUNDS = frozenset({"minimum", "maximum"})
OPEN_BOUNDS = frozenset({"exclusiveMinimum", "exclusiveMaximum"})
PATTERN = frozenset({"pattern"})
STEP = frozenset({"multipleOf"})
INTERNET = frozenset({"email", "hostname", "ipv4", "ipv6", "uuid"})
TIMES = frozenset({"date", "time", "date-time"})


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a target enforces (`words`), what it has at all, and how much of it.

    A word about the size of a value that a target does not enforce is told to the model in the description of the
    field, and checked when the reply is read. What concerns the form of the reply is refused instead.
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


GRAMMAR = Abilities(
    LENGTHS | COUNTS | BOUNDS | OPEN_BOUNDS | PATTERN,
    TIMES | {"uuid"},
    recursion=True,
    open_maps=True,
    bounds_on_fractions=False,
)
"""llama.cpp writes a grammar from the schema; Ollama has it inside."""

ABILITIES: Mapping[Target, Abilities] = {
    "openai": Abilities(
        COUNTS | BOUNDS | OPEN_BOUNDS | PATTERN | STEP,
        TIMES | INTERNET | {"duration"},
        recursion=True,
        optional=False,
        properties=5000,
    ),
    "google-json": Abilities(COUNTS | BOUNDS, TIMES, open_maps=True, properties=500, choices=500),
    "google-schema": Abilities(
        COUNTS | BOUNDS, frozenset({"date-time"}), whole_choices=False, properties=500, choices=500
    ),
    "vllm": Abilities(
        LENGTHS | COUNTS | BOUNDS | OPEN_BOUNDS | PATTERN,
        TIMES | INTERNET | {"duration"},
        recursion=True,
        open_maps=True,
    ),
    "llamacpp": GRAMMAR,
    "ollama": GRAMMAR,
}


LONG_CHOICE = 250
LONG_CHOICE_CHARACTERS = 15_000

PORTABLE_PATTERN = re.compile(r"\^(?:[^\\()]|\\[.\\/+*?()\[\]{}|^$-]|\((?!\?)|\))*\$", re.DOTALL)
"""Anchored, without classes such as `\\d`, look-around and back references: local grammars break on these silently."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node, where it stands, and how many objects and lists it stands in."""

    node: Node
    path: str
    depth: int


def check_abilities(shape: Shape, name: str, target: Target) -> None:
    """Refuse what a target cannot take.

    Raises:
        UsageError: the message names the field, the target and the way out.
    """
    abilities = ABILITIES[target]
    places = list(walk(shape.root, name, 1))
    for place in places:
        problem = problem_at(place, abilities)
        if problem is not None:
            raise refusal(place.path, target, *problem)
    size = total_size(places, abilities)
    if size is not None:
        raise refusal(name, target, size, "Ask for less in one reply.")


def refusal(path: str, target: Target, problem: str, hint: str) -> UsageError:
    """Say where, for whom, what and what next."""
    return UsageError(f"the schema target {target} cannot take this: {problem}", where=path, hint=hint)


def walk(node: Node, path: str, depth: int) -> Iterator[Place]:
    """Give every node with its place."""
    yield Place(node, path, depth)
    deeper = depth + isinstance(node, Fields | Items | OpenMap)
    for step, below in children(node):
        yield from walk(below, path + step, deeper)


def problem_at(place: Place, abilities: Abilities) -> tuple[str, str] | None:
    """Find what is wrong with one node, and the way out."""
    node = place.node
    if isinstance(node, Fields | Items | OpenMap) and place.depth > abilities.depth:
        return f"nested more than {abilities.depth} deep", "Make the reply flatter."
    match node:
        case Recursion() if not abilities.recursion:
            return "an object within itself", "Write the levels out, or ask for a flat list with the id of the parent."
        case OpenMap() if not abilities.open_maps:
            return "an object whose keys are not known", "Ask for a list of structs with a key and a value."
        case Fields():
            return problem_of_fields(node, abilities)
        case Choice():
            return problem_of_choice(node, abilities)
        case Text():
            return problem_of_text(node, abilities)
        case OneOf() if not node.options:
            return "a union of nothing", "Name what it can be."
    return None


def problem_of_fields(node: Fields, abilities: Abilities) -> tuple[str, str] | None:
    """Find a field that need not be there, where all must."""
    loose = [field.name for field in node.fields if not field.required]
    if loose and not abilities.optional:
        return f"the field {loose[0]} has a default", f"Make it `{loose[0]}: ... | None` without a default."
    return None


def problem_of_choice(node: Choice, abilities: Abilities) -> tuple[str, str] | None:
    """Find what is wrong with a choice."""
    if not abilities.whole_choices and not all(isinstance(value, str) for value in node.values):
        return "a choice among numbers", "Name the values as texts."
    if "" in node.values:
        return "an empty text as a choice", "Give it a name such as none."
    characters = sum(len(str(value)) for value in node.values)
    if len(node.values) > LONG_CHOICE and characters > LONG_CHOICE_CHARACTERS:
        return f"a choice with {characters:,} characters of values", "Use short ids."
    return None


def problem_of_text(node: Text, abilities: Abilities) -> tuple[str, str] | None:
    """Find a form of text that the target does not know."""
    if node.format and node.format not in abilities.formats:
        known = ", ".join(sorted(abilities.formats))
        return f"the format {node.format}, of {known}", "Ask for a plain text, and read it afterwards."
    if node.pattern and not PORTABLE_PATTERN.fullmatch(node.pattern):
        return (
            "a pattern that servers read differently",
            "Anchor it with ^ and $, and write classes out: [0-9] for a digit.",
        )
    return None


def total_size(places: list[Place], abilities: Abilities) -> str | None:
    """Find out whether all of it together is too much."""
    objects = [place.node for place in places if isinstance(place.node, Fields)]
    choices = [place.node for place in places if isinstance(place.node, Choice)]
    properties = sum(len(node.fields) for node in objects)
    values = sum(len(node.values) for node in choices)
    characters = sum(len(field.name) for node in objects for field in node.fields)
    characters += sum(len(str(value)) for node in choices for value in node.values)
    if properties > abilities.properties:
        return f"{properties:,} properties, of at most {abilities.properties:,}"
    if values > abilities.choices:
        return f"{values:,} values to choose from, of at most {abilities.choices:,}"
    if characters > abilities.characters:
        return f"{characters:,} characters of names and values, of at most {abilities.characters:,}"
    return None
