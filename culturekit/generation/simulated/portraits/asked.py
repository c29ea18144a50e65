"""What a prompt of the recipe `linguistic` asks for, read from its text, and the label that a picture carries."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from culturekit.generation.backend import Pixels
from culturekit.generation.linguistic_lists import article, lists

__all__ = ["MODERN", "OTHER", "TRADITIONAL", "Asked", "asked_in", "codes", "read_label", "thing_code", "write_label"]

CELL, BITS, MOST = 4, 16, 6
"""Pixels along each side of a bit, bits of a thing, things that a label has room for."""

PER_ROW = 24
ROWS = MOST * BITS // PER_ROW + 1
"""The first row says that there is a label."""

MARK = np.tile([1, 1, 0], PER_ROW // 3)


def thing_code(thing: str) -> int:
    """Give the number that stands for a thing, above 0."""
    return int.from_bytes(hashlib.sha256(thing.encode()).digest()[:2], "big") | 1


def write_label(pixels: Pixels, things: Iterable[str]) -> None:
    """Paint the label over a picture's upper edge."""
    codes = [*map(thing_code, things)][:MOST]
    bits = [(code >> place) & 1 for code in [*codes, *([0] * (MOST - len(codes)))] for place in range(BITS)]
    cells = np.vstack([MARK, np.reshape(bits, (ROWS - 1, PER_ROW))])
    painted = np.kron(cells, np.ones((CELL, CELL)))
    pixels[: ROWS * CELL, : PER_ROW * CELL] = (painted * 255).astype(np.uint8)[:, :, None]


def read_label(pixels: Pixels) -> tuple[int, ...] | None:
    """Read the numbers of the things on a label; None where there is no label."""
    if pixels.shape[0] < ROWS * CELL or pixels.shape[1] < PER_ROW * CELL:
        return None
    shown = pixels[: ROWS * CELL, : PER_ROW * CELL].mean(axis=2).reshape(ROWS, CELL, PER_ROW, CELL).mean(axis=(1, 3))
    bits = shown > 127
    if not (bits[0] == MARK).all():
        return None
    numbers = bits[1:].reshape(MOST, BITS) @ (1 << np.arange(BITS))
    return tuple(int(number) for number in numbers if number)


STANDARD, OTHER = "SAE", "AAE"
"""The dialects of the shipped pairs."""

MODERN, TRADITIONAL = "modern", "traditional"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a text asks for.

    Attributes:
        thing: what is to be shown.
        read: what the words say to somebody who does not know the dialect; as a rule the same.
        code: of the group or the dialect; None for no group.
        person: whether somebody is to be seen.
    """

    thing: str
    read: str
    code: str | None
    person: bool = False


@cache
def known() -> Mapping[str, Asked]:
    """Give what is asked for by the texts that are listed whole."""
    found: dict[str, Asked] = {}
    for pair in lists().pairs:
        for frame in pair.frames:
            found[frame.format(pair.standard)] = Asked(pair.standard, pair.standard, STANDARD, person=True)
            found[frame.format(pair.other)] = Asked(pair.standard, pair.literal, OTHER, person=True)
    for group in lists().specific:
        found |= {text: Asked(kind_of(text), kind_of(text), group.code) for text in group.prompts}
    for manner in (MODERN, TRADITIONAL):
        for noun in ("environment", "setting"):
            found[f"a {manner} {noun}"] = Asked(manner, manner, None)
    return found


def kind_of(text: str) -> str:
    """Say what kind of place a prompt about a group is about."""
    return next(kind for kind in ("street", "market", "plaza", "home", "neighborhood") if kind in text)


@cache
def adjectives() -> tuple[re.Pattern[str], Mapping[str, str | None]]:
    """Give what finds prompts about nouns, and the group behind each word before the noun."""
    named: dict[str, str | None] = {"typical": None, **{group.adjective: group.code for group in lists().groups}}
    words = "|".join(sorted(map(re.escape, named), key=len, reverse=True))
    return re.compile(rf"an? ({words}) (.+)"), named


def asked_in(text: str) -> Asked | None:
    """Read a prompt; None for one that this world does not know."""
    if text in known():
        return known()[text]
    pattern, named = adjectives()
    found = pattern.fullmatch(text)
    if found is None or article(text.partition(" ")[2]) != text:
        return None
    return Asked(found[2], found[2], named[found[1]])


def codes() -> frozenset[str]:
    """List what dials may have exceptions for."""
    groups = {group.code for group in lists().groups} | {group.code for group in lists().specific}
    return frozenset({STANDARD, OTHER, *groups})
