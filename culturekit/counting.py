"""Numbers with what they count, one of a thing in the singular."""

__all__ = ["counted"]

ONE = (("ies", "y"), ("ches", "ch"), ("sses", "ss"), ("shes", "sh"), ("xes", "x"), ("s", ""))
"""How words for many end, and how the word for one does."""

NOT_MANY = ("ss", "us", "is", "has", "was", "does")
"""How words end that are none for many."""


def counted(count: int, many: str) -> str:
    """Write a number before what it counts.

    Example:
        >>> counted(1_002, "rows set aside"), counted(1, "rows set aside"), counted(1, "countries")
        ('1,002 rows set aside', '1 row set aside', '1 country')
    """
    return f"{count:,} {one_of(many) if count == 1 else many}"


def one_of(many: str) -> str:
    """Put the first word in the singular, or the second where the first is not what is counted."""
    words = many.split(" ")
    for place, word in enumerate(words[:2]):
        if word.endswith("s") and not word.endswith(NOT_MANY):
            end, instead = next((end, instead) for end, instead in ONE if word.endswith(end))
            return " ".join([*words[:place], word.removesuffix(end) + instead, *words[place + 1 :]])
    return many
