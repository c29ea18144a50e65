"""What limits a value of a reply, in the words of JSON Schema and in words for a model."""

from collections.abc import Iterator

from culturekit.llm.reading.shape import Items, Node, Number, Text

__all__ = ["WORDS", "limits_of"]

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
