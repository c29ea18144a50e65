"""The one repair: the model is told, in our words, what was wrong with its reply, and is asked again."""

from dataclasses import replace

from culturekit.llm.client import Request
from culturekit.llm.reading.reply_codes import CODES, ParseFailure
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
    Text,
)
from culturekit.llm.reading.shape_reading import shape_of

__all__ = ["REPAIR_MARK", "expected_shape", "repair_request"]

WORDING = """

An earlier reply to this could not be used.
Error {code}: {sentence}
Reply again, with nothing but one JSON object of this shape:
{shape}
"""

REPAIR_MARK = WORDING.partition("Error")[0].replace("\n", "\\n").encode()
"""What stands in the body of every repair, and of nothing else: line breaks of data are escaped twice."""


def repair_request(request: Request, failure: ParseFailure) -> Request:
    """Ask again, and quote the error code and the expected shape; nothing of the earlier reply is sent back.

    The instructions differ from those of the first request, so the repair has a key of its own. For one shape there
    are as many as there are codes.
    """
    shape = expected_shape(shape_of(request.schema_type).root)
    note = WORDING.format(code=failure.code, sentence=CODES[failure.code], shape=shape)
    return replace(request, instructions=request.instructions + note)


def expected_shape(node: Node) -> str:
    """Write a shape as people would sketch it: `{"id": text, "verdict": "keep" | "remove"}`."""
    match node:
        case Fields():
            inside = ", ".join(f'"{field.name}": {expected_shape(field.node)}' for field in node.fields)
            return f"{{{inside}}}"
        case Items():
            return f"[{expected_shape(node.item)}, ...]"
        case OpenMap():
            return f"{{text: {expected_shape(node.value)}, ...}}"
        case OneOf():
            return " | ".join(expected_shape(option) for option in node.options)
        case Choice():
            return " | ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in node.values)
        case Recursion():
            return f"{node.name} again"
        case Text():
            return node.format or "text"
        case Number():
            return "whole number" if node.whole else "number"
        case Flag():
            return "true | false"
        case Nothing():
            return "null"
