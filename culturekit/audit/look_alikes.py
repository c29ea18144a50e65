"""Letters that look like Latin ones and are not."""

import re
import unicodedata
from functools import cache, lru_cache

__all__ = ["latin_twin", "mixed_words"]

TWINS = str.maketrans(
    "АВЕЅІЈКМНОРСТХҮаеѕіјорсухһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧο",
    "ABESIJKMHOPCTXYaesijopcyxhdqwABEZHIKMNOPTYXo",
)
"""Cyrillic and Greek letters that cannot be told from Latin ones by eye."""

WORD = re.compile(r"[^\W\d_]+")
SCRIPTS = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"}


def latin_twin(text: str) -> str:
    """Write words that pose as Latin in Latin letters; a word of one script stays as it is."""
    return WORD.sub(lambda match: twin_of(match[0]), text)


@lru_cache(maxsize=65_536)
def twin_of(word: str) -> str:
    """Give the Latin word that a word poses as; the word itself where it is none, or not wholly one."""
    if word.isascii():
        return word
    plain = "".join(map(decorative_twin, word))
    if "LATIN" not in (scripts := scripts_of(plain)) or len(scripts) == 1:
        return plain
    twin = plain.translate(TWINS)
    return twin if scripts_of(twin) == {"LATIN"} else plain


def decorative_twin(character: str) -> str:
    """Give the plain letter of a decorative one, such as a mathematical or a wide A."""
    plain = unicodedata.normalize("NFKC", character)
    return plain if not character.isascii() and plain.isascii() and plain.isalpha() and len(plain) == 1 else character


def mixed_words(text: str) -> list[str]:
    """List the words whose letters are of several of the scripts that look alike."""
    if text.isascii():
        return []
    return [match[0] for match in WORD.finditer(text) if len(scripts_of(match[0])) > 1]


def scripts_of(word: str) -> set[str]:
    """Name the scripts of a word, as far as they are among those that look alike."""
    return {script for character in word if (script := script_of(character)) in SCRIPTS}


@cache
def script_of(character: str) -> str:
    """Name the script of a letter by its Unicode name."""
    return unicodedata.name(character, "").partition(" ")[0]
