"""Reasons, visible in a name alone, why a candidate cannot be an artifact."""

import re
import unicodedata
from collections.abc import Sequence

__all__ = ["LATIN_LANGUAGES", "name_problem"]

MAX_NAME = 200
UNREADABLE = {"Cc", "Co", "Cn", "Cs"}
"""Unicode categories of characters that no name has; none of them is printable."""

BARE_QID = re.compile(r"^Q[0-9]+$")
NOT_AN_ITEM = re.compile(r"^(list of|lists of|category:|template:|wikipedia:|portal:|module:)", re.IGNORECASE)
DISAMBIGUATION = re.compile(r"\bdisambiguation\b", re.IGNORECASE)
LATIN_LANGUAGES = frozenset(
    "af de en es fi fil fr ha id ig it nl no pl pt ro sv sw tr vi xh yo zu".split()  # noqa: SIM905 - one line to read
)
"""Languages, of those culturekit knows words of, that are written in Latin letters."""


def name_problem(name: str | None, *, languages: Sequence[str]) -> tuple[str, str] | None:
    """Give the reason and the detail why a name is unusable; None when it will do."""
    if name is None or not name.strip():
        return "no usable label", ""
    if BARE_QID.match(name.strip()):
        return "label is only a QID", name
    if len(name) > MAX_NAME:
        return "malformed name", f"{len(name)} characters"
    if not name.isprintable() and any(unicodedata.category(character) in UNREADABLE for character in name):
        return "malformed name", "control or unassigned characters"
    if not any(map(str.isalpha, name)):
        return "malformed name", "no letters"
    if NOT_AN_ITEM.match(name) or DISAMBIGUATION.search(name):
        return "list, category, template or disambiguation", name
    if name.isascii():
        return None
    letters = [character for character in name if character.isalpha()]
    only_latin = all(language.split("-")[0] in LATIN_LANGUAGES for language in languages)
    if only_latin and not any("LATIN" in unicodedata.name(letter, "") for letter in letters):
        return "name in a script of none of the languages", name
    return None
