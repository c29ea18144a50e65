"""Numbers with what they count, one of a thing in the singular."""

__all__ = ["counted"]

ONE = (("ies", "y"), ("ches", "ch"), ("sses", "ss"), ("shes", "sh"), ("xes", "x"), ("s", ""))
"""How words for many end, and how the word for one does."""


def counted(count: int, many: str) -> str:
    """Write a number before what it counts.

    Example:
        >>> counted(1_002, "rows set aside"), counted(1, "rows set aside"), counted(1, "countries")
        ('1,002 rows set aside', '1 row set aside', '1 country')
    """
    return f"{count:,} {one_of(many) if count == 1 else many}"


def one_of(many: str) -> str:
    """Put the first word for many of some words in the singular, if there is one."""
    words = many.split(" ")
    for place, word in enumerate(words):
        if word.endswith("s") and not word.endswith(("ss", "us", "is")):
            end, instead = next((end, instead) for end, instead in ONE if word.endswith(end))
            return " ".join([*words[:place], word.removesuffix(end) + instead, *words[place + 1 :]])
    return many
