"""Identifiers of the artifacts that somebody lists: an item, or else `LLM:` and a slug, which no two names share."""

import unicodedata

from culturekit.builders.space.public_cube import QID, slug
from culturekit.kg.qids import ADDRESS
from culturekit.storage.digests import digest

__all__ = ["OF_A_LIST", "id_of", "item_of"]

OF_A_LIST = "list"
"""The source of artifacts that a person's file names."""

ONLY_BETWEEN = set(".,:;/\\'\"·")
"""Signs that tell no two names apart, though others of their kind do, such as those of `C#` and `Wham!`."""


def id_of(stated: str, name: str) -> str:
    """Give the identifier of an artifact without an item, from the one that its list states, or from its name."""
    return stated if stated.startswith("LLM:") and stated[4:] else f"LLM:{slug_of(stated or name)}"


def slug_of(name: str) -> str:
    """Make an identifier of a name; what it has no room for, and tells names apart, is told by a hash."""
    plain = " ".join(unicodedata.normalize("NFC", name).casefold().split())
    is_whole = slug(name) and not any(map(is_telling, plain))
    return slug(name) if is_whole else f"{slug(name)}~{digest(plain)[:8]}"


def is_telling(character: str) -> bool:
    """Tell the signs that can tell two names apart, as in `C++` and `C#`, and the vowels that some scripts write so."""
    kind = unicodedata.category(character)
    return kind[0] == "M" or kind in {"Sm", "Sc", "So"} or (kind == "Po" and character not in ONLY_BETWEEN)


def item_of(text: str) -> str | None:
    """Read the item that a text names, if it is nothing else."""
    item = ADDRESS.sub("", text.strip(), count=1).upper()
    return item if QID.fullmatch(item) else None
