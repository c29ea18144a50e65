"""Captions of the simulated world: which of its things a text names, by dimension, and the language spoken there."""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TypeAlias

from culturekit.generation.simulated.scenes.vocabulary import DIMENSIONS, world

__all__ = ["LANGUAGE", "Named", "all_named", "dice", "foreign_share", "named_in", "spoken", "understood"]

Named: TypeAlias = Mapping[str, tuple[str, ...]]
"""Things by dimension, each once, in the order in which a text names them."""


LANGUAGE = "zxx"
"""What is spoken there, as ISO 639 writes what is no language."""

WORD = re.compile(r"\w+")


@cache
def homes() -> Mapping[str, str]:
    """Give the dimension of everything that may be shown; what is told twice belongs to the first."""
    return {token: dimension for dimension in reversed(DIMENSIONS) for token in world().tokens(dimension)}


@cache
def pattern() -> re.Pattern[str]:
    """Find things in small letters, the longest name first."""
    names = sorted(homes(), key=lambda name: (-len(name), name))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")


@lru_cache(maxsize=65_536)
def named_in(text: str) -> Named:
    """Find the things that a text names."""
    found = dict.fromkeys(pattern().findall(" ".join(text.casefold().split())))
    return {dimension: tuple(name for name in found if homes()[name] == dimension) for dimension in DIMENSIONS}


def spoken(text: str) -> str:
    """Say an English text in the language of the simulated world: the letters of each word the other way round."""
    return WORD.sub(lambda word: word[0][::-1], text)


def understood(text: str) -> str:
    """Say a text of that language in English."""
    return spoken(text)


def all_named(named: Named) -> frozenset[str]:
    """Put the things of all dimensions together."""
    return frozenset(token for tokens in named.values() for token in tokens)


def dice(a: frozenset[str], b: frozenset[str]) -> float:
    """Say how far two sets of things are the same, from 0 to 1; two empty ones are."""
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0


def foreign_share(things: frozenset[str], country: str) -> float:
    """Say which share of some things only other countries show."""
    foreign = {token for dimension in DIMENSIONS for token in world().foreign(dimension, country)}
    return len(things & foreign) / len(things) if things else 0.0
