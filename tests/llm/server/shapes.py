"""Strict checks of what a client sent, built from small parts; each provider words the complaints its own way."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
Shape: TypeAlias = Callable[[Any, Path], None]  # looks at a value and raises a `Complaint` where it does not fit


class Complaint(Exception):
    """What does not fit, and where."""

    def __init__(
        self, kind: Literal["unknown", "missing", "type", "value"], path: Path, expected: str, found: Any = None
    ) -> None:
        """Keep the parts apart."""
        super().__init__(f"{kind} at {path}: expected {expected}")
        self.kind = kind
        self.path = path
        self.expected = expected
        self.found = found


def anything(value: Any, path: Path) -> None:
    """Take any value."""


def flag(value: Any, path: Path) -> None:
    """Take true or false."""
    if not isinstance(value, bool):
        raise Complaint("type", path, "a boolean", value)


def text(most: int | None = None, *, least: int = 0) -> Shape:
    """Take a text of at most so many characters."""

    def check(value: Any, path: Path) -> None:
        if not isinstance(value, str):
            raise Complaint("type", path, "a string", value)
        if len(value) < least or (most is not None and len(value) > most):
            raise Complaint("value", path, f"a string of {least} to {most} characters", value)

    return check


def number(low: float, high: float) -> Shape:
    """Take a number within bounds."""

    def check(value: Any, path: Path) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Complaint("type", path, "a number", value)
        if not low <= value <= high:
            raise Complaint("value", path, f"a number from {low:g} to {high:g}", value)

    return check


def whole(low: int, high: int = 2**63 - 1) -> Shape:
    """Take a whole number within bounds."""

    def check(value: Any, path: Path) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Complaint("type", path, "an integer", value)
        if not low <= value <= high:
            raise Complaint("value", path, f"an integer from {low} to {high}", value)

    return check


def one_of(*values: str) -> Shape:
    """Take one of some texts."""

    def check(value: Any, path: Path) -> None:
        if value not in values:
            raise Complaint("value", path, f"one of {', '.join(repr(one) for one in values)}", value)

    return check


def nothing_but(allowed: Any) -> Shape:
    """Take exactly one value."""

    def check(value: Any, path: Path) -> None:
        if value != allowed or type(value) is not type(allowed):
            raise Complaint("value", path, repr(allowed), value)

    return check


def maybe(shape: Shape) -> Shape:
    """Take null too."""

    def check(value: Any, path: Path) -> None:
        if value is not None:
            shape(value, path)

    return check


def list_of(shape: Shape, *, least: int = 0, most: int | None = None) -> Shape:
    """Take a list of things of one shape."""

    def check(value: Any, path: Path) -> None:
        if not isinstance(value, list):
            raise Complaint("type", path, "an array", value)
        if len(value) < least or (most is not None and len(value) > most):
            raise Complaint("value", path, f"an array of {least} to {most} items", value)
        for place, item in enumerate(value):
            shape(item, (*path, place))

    return check


def mapping_of(shape: Shape, *, most: int | None = None, longest_key: int = 1 << 20) -> Shape:
    """Take an object of free keys."""

    def check(value: Any, path: Path) -> None:
        if not isinstance(value, dict):
            raise Complaint("type", path, "an object", value)
        if most is not None and len(value) > most:
            raise Complaint("value", path, f"an object with at most {most} keys", value)
        for key, held in value.items():
            if len(key) > longest_key:
                raise Complaint("value", (*path, key), f"a key of at most {longest_key} characters", key)
            shape(held, (*path, key))

    return check


def fields(known: Mapping[str, Shape], *, required: tuple[str, ...] = ()) -> Shape:
    """Take an object of known keys only."""

    def check(value: Any, path: Path) -> None:
        if not isinstance(value, dict):
            raise Complaint("type", path, "an object", value)
        for key, held in value.items():
            shape = known.get(key)
            if shape is None:
                raise Complaint("unknown", (*path, key), "no such key", held)
            shape(held, (*path, key))
        for key in required:
            if key not in value:
                raise Complaint("missing", (*path, key), "the key")

    return check


def either(tag: str, shapes: Mapping[str, Shape]) -> Shape:
    """Take an object whose shape its tag tells."""
    tags = one_of(*shapes)

    def check(value: Any, path: Path) -> None:
        if not isinstance(value, dict):
            raise Complaint("type", path, "an object", value)
        if tag not in value:
            raise Complaint("missing", (*path, tag), "the key")
        tags(value[tag], (*path, tag))
        shapes[value[tag]](value, path)

    return check
