"""The shape of a reply as a tree of plain nodes: what is asked for, whoever is asked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    """A text; `format` names a well-known form such as `date`."""

    minimum: int | None = None
    maximum: int | None = None
    pattern: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True)
class Number:
    """A number; the bounds named `above` and `below` are not reached themselves."""

    whole: bool = False
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    step: float | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """Null."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some values."""

    values: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list; a `distinct` one holds no value twice."""

    item: "Node"
    minimum: int | None = None
    maximum: int | None = None
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class OpenMap:
    """An object whose keys are not known beforehand."""

    value: "Node"


@dataclass(frozen=True, slots=True)
class Field:
    """A key of an object, and what stands under it."""

    name: str
    node: "Node"
    required: bool = True
    description: str = ""


@dataclass(frozen=True, slots=True)
class Fields:
    """An object with known keys; `tag` is the key that tells it from its siblings in a union."""

    name: str
    fields: tuple[Field, ...]
    by_name: Mapping[str, Field] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OneOf:
    """A value of one of several kinds; `tag` is the key by which its objects are told apart."""

    options: tuple["Node", ...]
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Recursion:
    """An object that stands within itself, by its name."""

    name: str


Node: TypeAlias = Text | Number | Flag | Nothing | Choice | Items | OpenMap | Fields | OneOf | Recursion


@dataclass(frozen=True, slots=True)
class Shape:
    """The object asked for, and those that contain themselves."""

    root: Fields
    recursive: Mapping[str, Fields] = field(default_factory=dict)


def children(node: Node) -> Iterator[tuple[str, Node]]:
    """Give what stands directly below a node, with the step that leads there."""
    match node:
        case Fields():
            yield from ((f".{inner.name}", inner.node) for inner in node.fields)
        case Items():
            yield "[]", node.item
        case OpenMap():
            yield ".*", node.value
        case OneOf():
            yield from (("", option) for option in node.options)
        case _:
            return
