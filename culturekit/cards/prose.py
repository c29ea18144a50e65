"""Running text among cells that should hold names, prompts and ids.

A cell is a long passage when all of this holds:

- it has at least 25 words, or 60 letters of a script that writes no spaces;
- a sentence ends in it, or it has 60 words (120 such letters);
- its pieces between commas have 4 words or more on average, which lists of terms do not;
- half of its words or more begin with a small letter, where the script has any, which names do not.

The rule does not ask for a language. It lets through names of any length in capitals, prompts of the known templates,
negative prompts, lists of aliases, and paths of ids.
"""

import re

import polars as pl

__all__ = ["LONGEST_NAME", "long_passages"]

WORDS = 25
UNSPACED = 60
WITHOUT_END = 60
UNSPACED_WITHOUT_END = 120
PIECE = 4.0
SMALL = 0.5
SHORTEST = 60
"""Characters; no cell below can be a passage."""

LONGEST_NAME = 20

UNSPACED_LETTER = re.compile("[぀-ヿ㐀-䶿一-鿿豈-﫿฀-๿຀-໿က-႟ក-៿]")
ENDS = re.compile(r"[.!?…؟۔।॥።](?=[\s\"'”’»)\]]|$)|[。！？]")
PIECES = re.compile(r"[,;|、،，\n\t]+")


def long_passages(texts: pl.Series) -> list[str]:
    """Find the long passages of running text among cells."""
    long = texts.filter(texts.str.len_chars() >= SHORTEST)
    maybe = long.filter((long.str.count_matches(r"\s+") >= WORDS - 1) | long.str.contains(UNSPACED_LETTER.pattern))
    return [text for text in maybe.to_list() if is_passage(text)]


def is_passage(text: str) -> bool:
    """Tell whether a cell is a long passage of running text."""
    ended = ENDS.search(text) is not None
    unspaced = len(UNSPACED_LETTER.findall(text))
    if unspaced >= (UNSPACED if ended else UNSPACED_WITHOUT_END):
        return unspaced / pieces_of(text) >= 2 * PIECE
    words = [found for word in text.split() if (found := letters_of(word))]
    if len(words) < (WORDS if ended else WITHOUT_END) or len(words) / pieces_of(text) < PIECE:
        return False
    cased = [word for word in words if word[0].lower() != word[0].upper()]
    small = sum(1 for word in cased if word[0].islower())
    return len(cased) < len(words) / 2 or small >= SMALL * len(cased)


def letters_of(word: str) -> str:
    """Take the letters of a word; what is not a word has none."""
    return "".join(character for character in word if character.isalpha())


def pieces_of(text: str) -> int:
    """Count the pieces between commas and the like."""
    return sum(1 for piece in PIECES.split(text) if piece.strip()) or 1
