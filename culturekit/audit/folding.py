"""Names brought to one form, to tell whether two of them are the same."""

import re
import unicodedata

__all__ = ["fold", "fold_accents", "squeeze", "tidy"]

MARKED = re.compile(r"[^\w\s]", re.UNICODE)


def tidy(text: str) -> str:
    """Put one space between words and none around them."""
    return " ".join(text.split())


def squeeze(text: str) -> str:
    """Leave out white space altogether."""
    return "".join(text.split())


def fold(text: str) -> str:
    """Fold case, width and white space; accents stay, for they can tell two dishes apart."""
    return tidy(unicodedata.normalize("NFKC", text).casefold())


def fold_accents(text: str) -> str:
    """Fold accents and punctuation too: equal results are alike, and need not be the same."""
    bare = "".join(
        character for character in unicodedata.normalize("NFKD", fold(text)) if not unicodedata.combining(character)
    )
    return tidy(MARKED.sub(" ", bare))
