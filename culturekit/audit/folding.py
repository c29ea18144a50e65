"""Names brought to one form, to tell whether two of them are the same."""

import unicodedata

__all__ = ["fold", "squeeze", "tidy"]


def tidy(text: str) -> str:
    """Put one space between words and none around them."""
    return " ".join(text.split())


def squeeze(text: str) -> str:
    """Leave out white space altogether."""
    return "".join(text.split())


def fold(text: str) -> str:
    """Fold case, width and white space; accents stay, for they can tell two dishes apart."""
    return tidy(unicodedata.normalize("NFKC", text).casefold())
