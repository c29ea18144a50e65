"""A value held against a shape: the first thing that is wrong with it, and where, in our own words only."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from culturekit.llm.reading.schema_checks import WORDS, limits_of
from culturekit.llm.reading.shape import (
    Choice,
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

ShapeCode: TypeAlias = Literal["missing-key", "unknown-key", "wrong-type", "wrong-value", "number-out-of-range"]

LARGEST = 2**63 - 1
"""Beyond this no table can hold a whole number."""

PLAIN_TEXT = Text()

END = re.compile(r"(?<!\\)\$$")
"""To Python alone, `$` is also the place before a last line break."""


class Mistake(NamedTuple):
    """What is wrong: a code, the field as the type names it, and what was expected there."""

    code: ShapeCode
    field: str
    expected: str


def first_mistake(shape: Shape, value: object) -> Mistake | None:
    """Find the first mistake of a JSON value, None where it fits."""
    if isinstance(value, dict) and plainly_fits(shape.root, value):
        return None
    return next(mistakes(shape, shape.root, value, ""), None)


def plainly_fits(node: Fields, value: Mapping[str, object]) -> bool:
    """Tell quickly whether an object of plain texts and choices fits; most replies are no more than that."""
    if len(value) != len(node.fields):
        return False
    for field in node.fields:
        below, kind = value.get(field.name), field.node
        if type(below) is not str:
            return False
        if type(kind) is Choice:
            if below not in kind.values:
                return False
        elif kind != PLAIN_TEXT:
            return False
    return True


def mistakes(shape: Shape, node: Node, value: object, path: str) -> Iterator[Mistake]:
    """Give the mistakes of a value, nearest to the root first."""
    match node:
        case Fields():
            yield from mistakes_of_fields(shape, node, value, path)
        case Choice():
            if not is_one_of(value, node.values):
                code: ShapeCode = "wrong-value" if isinstance(value, str | int) else "wrong-type"
                yield Mistake(code, path, "one of the values listed")
        case Text():
            yield from mistakes_of_text(node, value, path)
        case Number():
            yield from mistakes_of_number(node, value, path)
        case Flag() if not isinstance(value, bool):
            yield Mistake("wrong-type", path, "true or false")
        case Nothing() if value is not None:
            yield Mistake("wrong-type", path, "null")
        case Items():
            yield from mistakes_of_items(shape, node, value, path)
        case OpenMap():
            if not isinstance(value, dict):
                yield Mistake("wrong-type", path, "an object")
            else:
                for below in value.values():
                    yield from mistakes(shape, node.value, below, f"{path}.*")
        case OneOf():
            yield from mistakes_of_union(shape, node, value, path)
        case Recursion():
            yield from mistakes(shape, shape.recursive[node.name], value, path)


def mistakes_of_fields(shape: Shape, node: Fields, value: object, path: str) -> Iterator[Mistake]:
    """Give the mistakes of an object; its own keys are known, others are counted and not named."""
    if not isinstance(value, dict):
        yield Mistake("wrong-type", path, "an object")
        return
    for field in node.fields:
        if field.name in value:
            yield from mistakes(shape, field.node, value[field.name], f"{path}.{field.name}")
        elif field.required:
            yield Mistake("missing-key", f"{path}.{field.name}", "every key that is asked for")
    if value.keys() - node.by_name.keys():
        yield Mistake("unknown-key", path, f"the keys {', '.join(node.by_name)} and no others")


def is_one_of(value: object, values: tuple[str | int, ...]) -> bool:
    """Tell whether a value is among some; true is not 1."""
    return isinstance(value, str | int) and not isinstance(value, bool) and value in values


def mistakes_of_text(node: Text, value: object, path: str) -> Iterator[Mistake]:
    """Give the mistakes of a text; formats are left to the type itself."""
    if not isinstance(value, str):
        yield Mistake("wrong-type", path, "a text")
        return
    if node.minimum is not None and len(value) < node.minimum:
        yield wrong(path, "minLength", node)
    if node.maximum is not None and len(value) > node.maximum:
        yield wrong(path, "maxLength", node)
    if node.pattern and not re.search(END.sub(r"\\Z", node.pattern), value):
        yield wrong(path, "pattern", node)


def mistakes_of_number(node: Number, value: object, path: str) -> Iterator[Mistake]:
    """Give the mistakes of a number; 3.0 is a whole number, true is none."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not isinstance(value, int | float) or (node.whole and not whole):
        yield Mistake("wrong-type", path, "a whole number" if node.whole else "a number")
        return
    if not -LARGEST <= value <= LARGEST and node.whole:
        yield Mistake("number-out-of-range", path, "a number of at most 63 bits")
    if any(
        (
            node.minimum is not None and value < node.minimum,
            node.maximum is not None and value > node.maximum,
            node.above is not None and value <= node.above,
            node.below is not None and value >= node.below,
            node.step is not None and value % node.step != 0,
        )
    ):
        limits = (WORDS[word].format(limit) for word, limit in limits_of(node))
        yield Mistake("wrong-value", path, " and ".join(limits))


def mistakes_of_items(shape: Shape, node: Items, value: object, path: str) -> Iterator[Mistake]:
    """Give the mistakes of a list."""
    if not isinstance(value, list):
        yield Mistake("wrong-type", path, "a list")
        return
    if node.minimum is not None and len(value) < node.minimum:
        yield wrong(path, "minItems", node)
    if node.maximum is not None and len(value) > node.maximum:
        yield wrong(path, "maxItems", node)
    if node.distinct and len({repr(item) for item in value}) < len(value):
        yield wrong(path, "uniqueItems", node)
    for item in value:
        yield from mistakes(shape, node.item, item, f"{path}[]")


def mistakes_of_union(shape: Shape, node: OneOf, value: object, path: str) -> Iterator[Mistake]:
    """Give the mistakes of the kind that comes nearest; there are none where any kind fits."""
    nearest: Mistake | None = None
    for option in node.options:
        mistake = next(mistakes(shape, option, value, path), None)
        if mistake is None:
            return
        if nearest is None or (nearest.code == "wrong-type" and nearest.field == path):
            nearest = mistake
    if nearest is not None:
        yield nearest


def wrong(path: str, word: str, node: Node) -> Mistake:
    """Say which limit is passed."""
    return Mistake("wrong-value", path, WORDS[word].format(dict(limits_of(node))[word]))
