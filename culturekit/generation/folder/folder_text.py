"""Texts as they survive in file names: folded so that what writing changed no longer matters, and names in order."""

import re
import unicodedata
from functools import lru_cache

__all__ = ["bare", "folded", "natural_order", "spaced", "words_of"]

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
