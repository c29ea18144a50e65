"""Naming patterns such as `{prompt}__{id}.png`: what the parts of a file's path mean.

A pattern is held against as many last parts of a path as it has itself, so that `{prompt_id}/{id}` fits in whatever
folder the folders lie; a pattern that begins with `/` begins at the folder named. Longer texts (`{prompt}`,
`{prompt_id}`, `{artifact}`) take as much as they can, all other fields as little.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from culturekit.generation.folder.folder_listing import PICTURE_SUFFIXES

__all__ = [
    "FIELDS",
    "Fields",
    "Pattern",
    "bare",
    "folded",
    "natural_order",
    "parse_pattern",
    "parse_patterns",
    "spaced",
    "words_of",
]

DIGITS = re.compile(r"([0-9]{1,18})")
WORD_ENDS = re.compile(r"[\W_]+")
SEPARATORS = re.compile(r"[\s_+]+")


@lru_cache(maxsize=65_536)
def folded(text: str) -> str:
    """Fold a text to its letters, marks and digits: case, spaces, punctuation and ways of encoding go."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    if plain.isascii():
        return "".join(filter(str.isalnum, plain))
    return "".join(c for c in unicodedata.normalize("NFC", plain) if unicodedata.category(c)[0] in "LMN")


@lru_cache(maxsize=65_536)
def bare(text: str) -> str:
    """Fold a text further, to letters without accents, as many tools write names."""
    key = folded(text)
    if key.isascii():
        return key
    return "".join(c for c in unicodedata.normalize("NFKD", key) if unicodedata.category(c)[0] in "LN")


def spaced(text: str) -> str:
    """Fold a text word by word, one space between words."""
    return " ".join(filter(None, (bare(word) for word in WORD_ENDS.split(text))))


def natural_order(name: str) -> tuple[tuple[int | str, ...], str]:
    """Give what names are sorted by, so that img2 comes before img10."""
    parts = DIGITS.split(name)
    return tuple(int(part) if place % 2 else part for place, part in enumerate(parts)), name


def words_of(text: str) -> str:
    """Write the text of a name with spaces, where it has none."""
    return text if " " in text else SEPARATORS.sub(" ", text).strip()


NUMBERS = ("repeat", "slot", "seed")
LONG = ("prompt_id", "prompt", "artifact", "artifact_id")
FIELDS = (*LONG, *NUMBERS, "model", "id", "concept", "country", "group", "_")
BETWEEN = "|"
"""What stands between patterns that are tried one after the other."""

PIECE = re.compile(r"\{\{|\}\}|\{(?P<field>[^{}]*)\}|[{}]|[^{}]+")
SUFFIXES = "|".join(sorted(suffix[1:] for suffix in PICTURE_SUFFIXES))
ANY_SUFFIX = r"\.[^./]+"
SUFFIX = re.compile(rf"\.(?:{SUFFIXES})$", re.IGNORECASE)

Fields: TypeAlias = Mapping[str, str]
"""What a name says, by field."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern, and what finds its fields in a name; `otherwise` parts a name at the other end.

    One that is `without_suffix` fits whatever the extension.
    """

    text: str
    parts: int
    anchored: bool
    without_suffix: bool
    names: tuple[str, ...]
    expression: re.Pattern[str]
    otherwise: re.Pattern[str]

    def fields(self, name: str, *, otherwise: bool = False) -> Fields | None:
        """Read the fields of a relative path; None where the pattern does not fit."""
        parts = name.split("/")
        if len(parts) < self.parts or (self.anchored and len(parts) != self.parts):
            return None
        own = "/".join(parts[-self.parts :])
        if self.without_suffix:
            own = SUFFIX.sub("", own)
        expression = self.otherwise if otherwise else self.expression
        match = expression.fullmatch(own if own.isascii() else unicodedata.normalize("NFC", own))
        return None if match is None else match.groupdict()


def parse_patterns(text: str) -> tuple[Pattern, ...]:
    """Read patterns with `|` between them; an empty text is none.

    Raises:
        ValueError: one of them is wrong, in words for its writer.
    """
    return tuple(parse_pattern(one) for one in text.split(BETWEEN)) if text else ()


def parse_pattern(text: str) -> Pattern:
    """Read one pattern.

    Raises:
        ValueError: it is wrong, in words for its writer.
    """
    anchored, body = text.startswith("/"), text.removeprefix("/")
    if not body or body.endswith("/") or "//" in body:
        raise ValueError(f"pattern {text!r} does not end in the name of a file")
    if any(part in (".", "..") for part in body.split("/")):
        raise ValueError(f"pattern {text!r} leads out of the folder with '..' or '.'")
    pieces, suffix = tuple(pieces_of(body, text)), ""
    stem, dot, end = body.rpartition(".")
    if dot and end == "*":
        pieces, suffix = tuple(pieces_of(stem, text)), ANY_SUFFIX
    elif dot and f".{end.lower()}" in PICTURE_SUFFIXES:
        pieces, suffix = tuple(pieces_of(stem, text)), rf"\.(?i:{re.escape(end)})"
    names = tuple(dict.fromkeys(piece.field for piece in pieces if piece.field and piece.field != "_"))
    if not names:
        raise ValueError(f"pattern {text!r} has no field; fields are {listed()}")
    for before, after in pairwise(pieces):
        if before.field and after.field:
            raise ValueError(
                f"pattern {text!r} has nothing between {{{before.field}}} and {{{after.field}}}: "
                "no one could tell where one ends"
            )
    parts = body.count("/") + 1
    greedy, lazy = (re.compile(expression_of(pieces, long) + suffix, re.DOTALL) for long in ("+", "+?"))
    return Pattern(text, parts, anchored, not suffix, names, greedy, lazy)


@dataclass(frozen=True, slots=True)
class Piece:
    """A field, or what stands between fields."""

    field: str = ""
    literal: str = ""


def pieces_of(body: str, text: str) -> Iterator[Piece]:
    """Part a pattern into fields and what stands between them."""
    for match in PIECE.finditer(body):
        found, field = match[0], match["field"]
        if field is not None:
            if field not in FIELDS:
                raise ValueError(f"pattern {text!r} has the field {{{field}}}, which is none of {listed()}")
            yield Piece(field=field)
        elif found in ("{", "}"):
            raise ValueError(f"pattern {text!r} has a brace that nothing closes; one that is meant is written twice")
        else:
            yield Piece(literal=unicodedata.normalize("NFC", found[0] if found in ("{{", "}}") else found))


def expression_of(pieces: tuple[Piece, ...], long: str) -> str:
    """Write a pattern as a regular expression; a field named twice says the same twice."""
    written, seen = [], set()
    for piece in pieces:
        field = piece.field
        if not field:
            written.append(re.escape(piece.literal))
        elif field == "_":
            written.append("[^/]*?")
        elif field in seen:
            written.append(f"(?P={field})")
        else:
            seen.add(field)
            of = "[0-9]{1,20}" if field in NUMBERS else f"[^/]{long if field in LONG else '+?'}"
            written.append(f"(?P<{field}>{of})")
    return "".join(written)


def listed() -> str:
    """List the fields for a message."""
    return ", ".join(f"{{{field}}}" for field in sorted(FIELDS, key=natural_order))
