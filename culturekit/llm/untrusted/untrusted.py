"""Text from outside goes to a model as data: cleaned of what nobody sees, escaped as JSON, and fenced.

In the JSON, no text holds an angle bracket, a back-tick, a bracket, a brace or a line break as such; all stand as
escapes. The fence is made of angle brackets and the hash of the data, so it cannot stand inside, whatever a text says.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring
from math import isfinite
from typing import TypeAlias

from culturekit.errors import UsageError
from culturekit.llm.untrusted.hidden_characters import JOINERS, without_hidden_characters
from culturekit.llm.untrusted.hidden_markup import without_hidden_markup

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

# Characters of one text that are sent; a label or a description is far shorter, a page says so with `LongText`.
LONGEST_TEXT = 8_000
# What opens markup, templates, code and the turns of chat templates, in look-alikes too where a model uses these.
ESCAPED = re.compile("[<>\\[\\]{}`|#~\\x7f\uff1c\uff1e\uff5c\u2581]")

# Texts of letters, digits and harmless marks are sent as they are, between quotes. Most labels are such texts.
PLAIN = re.compile(r"[\w !$%'()*+,./:;=?@^-]*")
FILLERS = re.compile("[\u115f\u1160\u3164\uffa0]")  # letters, as Unicode has it, that nobody sees
LITERALS = {None: "null", True: "true", False: "false"}

MOST_HIDDEN = 20  # how many times as long a text may be as what is shown of it, before it is cut unread


@dataclass(frozen=True, slots=True)
class LongText:
    """A text that is meant to be long, such as a page; it is cut at a length of its own."""

    text: str
    longest: int


def user_message(data: Mapping[str, object]) -> str:
    """Write data as the message of a user: one line of JSON between two equal fences; same data, same text.

    Raises:
        UsageError: a value is no text, number, boolean, None, list or mapping.
    """
    body = plainly_written(data) or written(cleaned(data))
    fence = f"<untrusted-data-{hashlib.sha256(body.encode()).hexdigest()[:16]}>"
    return f"{fence}\n{body}\n{fence}"


def plainly_written(data: Mapping[str, object]) -> str:
    """Write plain texts and lists of them as `written(cleaned(data))` would; empty where there is more to do."""
    heads = plain_keys(tuple(data))
    if heads is None:
        return ""
    parts = []
    for key, head in heads:
        value = data[key]
        if type(value) is str and is_plain(value):
            shown = f'"{value}"'
        elif type(value) is list and all(type(item) is str and is_plain(item) for item in value):
            shown = "[" + ",".join([f'"{item}"' for item in value]) + "]"
        elif value is None:
            shown = "null"
        else:
            return ""
        parts.append(head + shown)
    return "{" + ",".join(parts) + "}"


@lru_cache(maxsize=1024)
def plain_keys(keys: tuple[str, ...]) -> list[tuple[str, str]] | None:
    """Write keys in their order, each with its colon; None where one is not sent as it is."""
    heads = [(key, f"{written_key(key)}:") for key in sorted(keys)]
    return heads if all(clean_key(key) == key for key in keys) else None


def is_plain(text: str) -> bool:
    """Tell whether a text is sent as it is."""
    if len(text) > LONGEST_TEXT or PLAIN.fullmatch(text) is None:
        return False
    return text.isascii() or FILLERS.search(text) is None


def strip_hidden(text: str) -> str:
    """Take out what a reader would not see: hidden characters, comments, tags, and elements that are not shown."""
    return without_hidden_markup(without_hidden_characters(text))


def cleaned(data: Mapping[str, object]) -> dict[str, Json]:
    """Give data as it is sent: each text without what is hidden, and cut with a note where it is too long."""
    return clean_mapping(data, "data")


def clean(value: object, path: str) -> Json:
    """Clean a value and all below it."""
    match value:
        case str():
            return clean_text(value, LONGEST_TEXT)
        case LongText():
            return clean_text(value.text, value.longest)
        case bool() | None:
            return value
        case int():
            return int(value)
        case float() if isfinite(value):
            return float(value)
        case Mapping():
            return clean_mapping(value, path)
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return [clean(item, f"{path}[{number}]") for number, item in enumerate(value)]
    raise UsageError(
        "this cannot be sent as JSON",
        where=path,
        expected="texts, finite numbers, booleans, None, lists and mappings of them",
        found=type(value).__name__,
    )


def clean_mapping(value: Mapping[str, object], path: str) -> dict[str, Json]:
    """Clean the keys and values of a mapping; two keys may not look the same."""
    made = {clean_key(str(key)): clean(below, f"{path}.{key}") for key, below in value.items()}
    if len(made) < len(value):
        raise UsageError("two keys are the same once what is hidden is taken out", where=path)
    return made


@lru_cache(maxsize=1024)
def clean_key(key: str) -> str:
    """Strip a key; those of one task are always the same few."""
    return clean_text(key, LONGEST_TEXT)


@lru_cache(maxsize=1024)
def written_key(key: str) -> str:
    """Write a key as JSON."""
    return written(key)


def clean_text(text: str, longest: int) -> str:
    """Strip a text, and cut it with a note."""
    shown = strip_hidden(text[: longest * MOST_HIDDEN])
    if len(shown) <= longest and len(text) <= longest * MOST_HIDDEN:
        return shown
    note = f" [cut: {len(text)} characters are too many]"
    return shown[: max(longest - len(note), 0)].rstrip(JOINERS) + note


def written(value: Json) -> str:
    """Write a value as JSON, keys sorted; characters that mean something outside JSON are escaped."""
    match value:
        case str():
            return ESCAPED.sub(escape, encode_basestring(value))
        case dict():
            return "{" + ",".join(f"{written_key(key)}:{written(value[key])}" for key in sorted(value)) + "}"
        case list():
            return "[" + ",".join(map(written, value)) + "]"
        case None | bool():
            return LITERALS[value]
    return repr(value)


def escape(match: re.Match[str]) -> str:
    """Write a character as JSON allows any character to be written."""
    return f"\\u{ord(match[0]):04x}"
