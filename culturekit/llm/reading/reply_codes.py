"""Why a reply is not an answer: a closed list of codes, each with one sentence that any model may be told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ReplyCode: TypeAlias = Literal[
    "empty",
    "endless-white-space",
    "too-long",
    "too-deep",
    "not-json",
    "unfinished",
    "fenced",
    "text-around",
    "not-an-object",
    "duplicate-key",
    "missing-key",
    "unknown-key",
    "wrong-type",
    "wrong-value",
    "not-a-number",
    "number-out-of-range",
    "lone-surrogate",
    "unknown-id",
    "missing-id",
    "duplicate-id",
    "empty-quote",
    "quote-not-found",
]

CODES: Mapping[ReplyCode, str] = {
    "empty": "The reply has no text.",
    "endless-white-space": "The reply is white space without end.",
    "too-long": "The reply is far longer than any answer.",
    "too-deep": "The reply is nested far deeper than any answer.",
    "not-json": "The reply is not JSON.",
    "unfinished": "The reply begins as JSON and breaks off.",
    "fenced": "The JSON stands in a code fence; it must stand alone.",
    "text-around": "There is text around the JSON; it must stand alone.",
    "not-an-object": "The reply is JSON, but not an object.",
    "duplicate-key": "A key stands twice in one object.",
    "missing-key": "A key that was asked for is missing.",
    "unknown-key": "There is a key that was not asked for.",
    "wrong-type": "A value is of the wrong type.",
    "wrong-value": "A value is not one of those allowed, or outside its limits.",
    "not-a-number": "NaN and Infinity are not JSON numbers.",
    "number-out-of-range": "A number is too large to be kept.",
    "lone-surrogate": "A text holds half of a character.",
    "unknown-id": "An id is not among those that were given.",
    "missing-id": "An id that was given is not answered.",
    "duplicate-id": "An id is answered twice.",
    "empty-quote": "A quote is empty.",
    "quote-not-found": "A quote does not stand in the source word for word.",
}


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """A reply that is not an answer: its code, where in the shape, and the raw text.

    `detail` is made of our own words and the field names of the shape; nothing of the reply stands in it, so it may
    be shown and sent. `raw` may hold anything.
    """

    code: ReplyCode
    detail: str
    raw: str = field(repr=False)
