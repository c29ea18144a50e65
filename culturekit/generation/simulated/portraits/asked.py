"""What a prompt of the recipe `linguistic` asks for, read from its text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from culturekit.generation.linguistic_lists import article, lists

__all__ = ["MODERN", "OTHER", "STANDARD", "TRADITIONAL", "Asked", "asked_in", "codes"]

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
