"""Words of messages: numbers with what they count, and what others wrote without what steers a terminal."""

# How words for many end, and how the word for one does.
ONE = (("ies", "y"), ("ches", "ch"), ("sses", "ss"), ("shes", "sh"), ("xes", "x"), ("s", ""))

NOT_MANY = ("ss", "us", "is", "has", "was", "does", "waits", "fits", "lacks")  # How words end that are none for many
DOES = {"are": "is", "have": "has"}  # What one does that many do, where it is not an s more


def counted(count: int, many: str, *, verb: str = "") -> str:
    """Write a number before what it counts, and after it what these do.

    Example:
        >>> counted(1_002, "rows set aside"), counted(1, "rows set aside"), counted(1, "countries", verb="have")
        ('1,002 rows set aside', '1 row set aside', '1 country has')
    """
    if count == 1:
        many, verb = one_of(many), DOES.get(verb, verb and f"{verb}s")
    return f"{count:,} {many} {verb}".rstrip()


def counted_reason(count: int, reason: str) -> str:
    """Write a number before a reason, which is of many, or said of each: drops have a row for each.

    Example:
        >>> counted_reason(2, "images without a text"), counted_reason(2, "no prompt"), counted_reason(1, "no prompt")
        ('2 images without a text', '2 × no prompt', '1 no prompt')
    """
    is_of_each = count != 1 and one_of(reason) == reason
    return f"{count:,} × {reason}" if is_of_each else counted(count, reason)


def one_of(many: str) -> str:
    """Put the first word in the singular, or the second where the first is not what is counted."""
    words = many.split(" ")
    for index, word in enumerate(words[:2]):
        if word.endswith("s") and not word.endswith(NOT_MANY):
            end, instead = next((end, instead) for end, instead in ONE if word.endswith(end))
            return " ".join([*words[:index], word.removesuffix(end) + instead, *words[index + 1 :]])
    return many


JOINERS = "\u200c\u200d"  # Letters of Persian, Hindi and others join by these, and emoji; a terminal obeys neither


def printable(text: str, *, keep: str = "") -> str:
    """Write what is not seen, or would break a line or turn the reading direction, by its code point."""
    return "".join(letter if letter.isprintable() or letter in keep else ascii(letter)[1:-1] for letter in text)


def without_halves(text: str) -> str:
    """Join the halves of characters (surrogates) that stand together; one that stands alone becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
