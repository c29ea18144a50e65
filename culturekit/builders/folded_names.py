"""Names without what differs between two ways of writing the same one."""

import unicodedata

__all__ = ["folded", "without_accents"]

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
