"""Names without what differs between two ways of writing the same one, and keys that equal names share."""

import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import chain

import polars as pl

__all__ = ["case_folds", "folded", "loose_key", "loose_key_of", "names_among", "without_accents"]

ACCENTED_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC")


def folded(name: str) -> str:
    """Leave out case, width, punctuation and spaces at the ends; what stands between words is one space.

    Marks that belong to the letters of a script stay, as do accents: they can tell two names apart.
    """
    plain = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())
    kept = "".join(character if is_of_a_word(character) else " " for character in plain)
    return " ".join(kept.split())


def is_of_a_word(character: str) -> bool:
    """Tell letters, digits and marks from what divides them."""
    return unicodedata.category(character)[0] in "LNM"


def without_accents(name: str) -> str:
    """Leave out the accents of a folded name, where they stand on Latin, Greek or Cyrillic letters."""
    bare: list[str] = []
    accented = False
    for character in unicodedata.normalize("NFD", name):
        if unicodedata.combining(character) and accented:
            continue
        accented = unicodedata.name(character, "").startswith(ACCENTED_SCRIPTS)
        bare.append(character)
    return unicodedata.normalize("NFC", "".join(bare))


CASED = (range(0x3000), range(0xA000, 0xB000), range(0xF900, 0x10000))
"""Where letters lie that folding changes though they are small; none does elsewhere."""


def loose_key(text: pl.Expr) -> pl.Expr:
    """Leave the letters and digits of a column of texts, without case, width, accents and what stands between words.

    Two names that `folded` makes equal have equal keys, as have two whose accents agree. Who compares names looks at
    those of equal keys only.
    """
    small = text.str.normalize("NFKC").str.to_lowercase().str.replace_many(dict(case_folds()))
    return small.str.normalize("NFKD").str.replace_all(r"[^\p{L}\p{N}]+", "")


def ascii_key(text: pl.Expr) -> pl.Expr:
    """Give the same for texts of ASCII alone, for a quarter of the work: most names in a graph are such texts."""
    return text.str.to_lowercase().str.replace_all(r"[^a-z0-9]+", "")


@lru_cache(maxsize=65_536)
def loose_key_of(name: str) -> str:
    """Give the key of one name: the same as that of a column."""
    small = unicodedata.normalize("NFKC", name).lower().translate(case_folds_by_number())
    return "".join(filter(is_letter_or_digit, unicodedata.normalize("NFKD", small)))


def is_letter_or_digit(character: str) -> bool:
    """Tell what counts in a key."""
    return unicodedata.category(character)[0] in "LN"


def names_among(frame: pl.DataFrame, keys: pl.Series) -> pl.DataFrame:
    """Keep the rows that a label, a title or an alias of some keys stands in."""
    with_row = frame.with_row_index("row")
    named = pl.concat(
        [
            with_row.select("row", name="label"),
            with_row.select("row", name="title"),
            with_row.select("row", name=pl.col("aliases")).explode("name"),
        ]
    ).drop_nulls()
    is_ascii = pl.col("name").str.len_bytes() == pl.col("name").str.len_chars()
    parts = ((is_ascii, ascii_key(pl.col("name"))), (~is_ascii, loose_key(pl.col("name"))))
    hits = pl.concat(named.filter(which).filter(key.is_in(keys.implode())).select("row") for which, key in parts)
    return with_row.join(hits, on="row", how="semi", maintain_order="left").drop("row")


@cache
def case_folds() -> Mapping[str, str]:
    """List the few letters that folding changes though they are small already, such as `ß`."""
    small = {character.lower() for character in map(chr, chain(*CASED))}
    return {letter: letter.casefold() for letter in sorted(small) if letter.casefold() != letter}


@cache
def case_folds_by_number() -> Mapping[int, str]:
    """Give the same as a table for `str.translate`."""
    return str.maketrans(dict(case_folds()))
