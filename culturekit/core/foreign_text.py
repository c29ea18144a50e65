"""Texts that others wrote: what no UTF-8 can hold, and what a terminal would obey."""

JOINERS = "\u200c\u200d"  # Letters of Persian, Hindi and others join by these, and emoji; a terminal obeys neither


def printable(text: str, *, keep: str = "") -> str:
    """Write what is not seen, or would break a line or turn the reading direction, by its code point."""
    return "".join(letter if letter.isprintable() or letter in keep else ascii(letter)[1:-1] for letter in text)


def without_halves(text: str) -> str:
    """Join the halves of characters (surrogates) that stand together; one that stands alone becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
