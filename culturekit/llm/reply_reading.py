"""A model's text becomes a value, or a reason why it did not; it never becomes a crash."""

from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from culturekit.llm.client import Request

__all__ = ["Answer", "ParseFailure", "read_reply"]


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """A reply that is not an answer; the raw text stays with it."""

    code: str
    raw: str


Answer: TypeAlias = msgspec.Struct | ParseFailure


def read_reply(request: Request, text: str) -> Answer:
    """Read a reply as a JSON object of the shape and with the values that the request allows."""
    try:
        value: msgspec.Struct = msgspec.json.decode(text.encode("utf-8", "surrogatepass"), type=request.reply)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ParseFailure("not a JSON object of the shape asked for", text)
    for key, allowed in request.allowed.items():
        if getattr(value, key) not in allowed:
            return ParseFailure(f"a value of {key} that is not allowed", text)
    return value
