"""A shape held against what a target can take, before a request is paid for."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from culturekit.errors import UsageError
from culturekit.llm.reading.schema_targets import ABILITIES, Abilities, Target
from culturekit.llm.reading.shape import Choice, Fields, Items, Node, OneOf, OpenMap, Recursion, Shape, Text, children

__all__ = ["check_abilities"]

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
