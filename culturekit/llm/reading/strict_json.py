"""JSON from a model, read without mercy: no key twice, no NaN, no half characters, and an end to length and depth."""

import json
import re
from collections.abc import Iterator
from typing import Any, Literal, NoReturn

import msgspec

from culturekit.llm.reading.reply_codes import ReplyCode

Fences = Literal["refuse", "strip"]

LONGEST = 1_000_000
"""Characters; what a model can say in one reply ends well before."""

SHORT = 2_000
TEXTS = msgspec.json.Decoder(dict[str, str])

DEEPEST = 32
"""Levels; the deepest schema that any target takes has 10."""

FLOOD = 200
"""Characters of white space in a row, in what is no answer, that are called endless."""

WHITE_SPACE = " \t\r\n"
RUN = re.compile(r"[ \t\r\n]+")
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
LOOKED_AT = 20
EXACT = 2**53


class Unreadable(Exception):
    """A text that is not one strict JSON object."""

    def __init__(self, code: ReplyCode) -> None:
        """Carry the code."""
        super().__init__(code)
        self.code: ReplyCode = code


def read_json(text: str, *, fences: Fences = "refuse") -> dict[str, Any]:
    """Read exactly one JSON object, with nothing around it but white space.

    With `fences="strip"` a code fence around it is taken off, if the whole text is that one fence.

    Raises:
        Unreadable: with the code that says why.
    """
    plain = plain_object(text)
    if plain is not None:
        return plain
    if len(text) > LONGEST:
        raise Unreadable("endless-white-space" if flooded(text[:LONGEST]) else "too-long")
    bare = text.strip(WHITE_SPACE)
    if not bare:
        raise Unreadable("endless-white-space" if flooded(text) else "empty")
    if fences == "strip":
        bare = without_fence(bare)
    try:
        value = decode(bare)
    except json.JSONDecodeError as error:
        raise Unreadable("endless-white-space" if flooded(text) else name_of(bare, error)) from None
    if not isinstance(value, dict):
        raise Unreadable("not-an-object")
    if not is_text(bare) or ("\\u" in bare and not all(map(is_text, texts(value)))):
        raise Unreadable("lone-surrogate")
    return value


def plain_object(text: str) -> dict[str, Any] | None:
    """Read a short object of ASCII texts without escapes, as most replies are; None where there is more to look at.

    Four quotation marks a pair: so no key stands there twice.
    """
    if len(text) > SHORT or not text.isascii() or "\\" in text:
        return None
    try:
        value: dict[str, Any] = TEXTS.decode(text)
    except msgspec.DecodeError:
        return None
    return value if text.count('"') == 4 * len(value) else None


def decode(text: str) -> object:
    """Decode JSON that is no deeper than allowed."""
    if text.count("{") + text.count("[") > DEEPEST and too_deep(text):
        raise Unreadable("too-deep")
    try:
        return DECODER.decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        raise Unreadable("number-out-of-range") from None


def too_deep(text: str) -> bool:
    """Tell whether the brackets of a text, those in its strings left out, are nested deeper than allowed."""
    level = 0
    for token in TOKEN.finditer(text):
        level += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if level > DEEPEST:
            return True
    return False


def flooded(text: str) -> bool:
    """Tell whether white space runs on without end, as local models do when a schema only allows it."""
    return any(len(run[0]) >= FLOOD for run in RUN.finditer(text))


def without_fence(text: str) -> str:
    """Take a code fence off, if it is one and there is nothing else."""
    opening, newline, rest = text.partition("\n")
    if not newline or not re.fullmatch(r"```[a-zA-Z]*[ \t\r]*", opening) or not rest.endswith("```"):
        return text
    inner = rest[:-3].strip(WHITE_SPACE)
    return text if "```" in inner else inner


def name_of(text: str, error: json.JSONDecodeError) -> ReplyCode:
    """Say what kind of thing a text is that is not JSON."""
    if text.startswith("```"):
        return "fenced"
    if error.msg == "Extra data" or any(holds_object(text, start) for start in braces(text)):
        return "text-around"
    breaks_off = error.pos >= len(text) or error.msg.startswith("Unterminated")
    return "unfinished" if text[0] == "{" and breaks_off else "not-json"


def braces(text: str) -> Iterator[int]:
    """Give the places of the first opening braces, without the one a text begins with."""
    start = text.find("{", 1)
    for _ in range(LOOKED_AT if text[0] != "{" else 0):
        if start < 0:
            return
        yield start
        start = text.find("{", start + 1)


def holds_object(text: str, start: int) -> bool:
    """Tell whether a JSON object begins at a place."""
    try:
        DECODER.raw_decode(text, start)
    except (ValueError, Unreadable):
        return False
    return True


def is_text(text: str) -> bool:
    """Tell whether all characters of a text are whole."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def texts(value: object) -> Iterator[str]:
    """Give all texts of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for key, below in value.items():
            yield key
            yield from texts(below)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs, where no key stands twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise Unreadable("duplicate-key")
    return made


def finite(digits: str) -> float:
    """Read a number that a float can hold; to JSON 3.0 is the whole number 3."""
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise Unreadable("number-out-of-range")
    return int(number) if number.is_integer() and abs(number) < EXACT else number


def refuse_constant(_: str) -> NoReturn:
    """Refuse NaN and the infinities, which Python reads and JSON does not have."""
    raise Unreadable("not-a-number")


DECODER = json.JSONDecoder(object_pairs_hook=unique, parse_float=finite, parse_constant=refuse_constant)
