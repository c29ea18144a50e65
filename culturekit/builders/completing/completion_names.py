"""Names that a model proposes: which can be used, which two are one, and the id of what no graph knows."""

import unicodedata
from collections.abc import Container, Sequence
from itertools import count

from culturekit.builders.filtering.name_rules import name_problem
from culturekit.builders.folded_names import folded, without_accents
from culturekit.llm.untrusted.suspicion import suspicious

__all__ = ["MOST_CHARACTERS", "SLUG", "accents_agree", "artifact_slug", "proposal_problem", "stripped_name"]

MOST_CHARACTERS = 120
MOST_WORDS = 12
"""Longer than any name of an artifact is, and shorter than most sentences."""

SLUG = "LLM:"
QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」", "『": "』", "`": "`"}
NEVER_IN_A_NAME = frozenset("<>{}[]|\\`\n\r\t=;*#@^~_$")
HARMLESS = ("look-alikes",)
"""Wide letters are usual in Japanese names."""

BEGINS_A_FORMULA = ("=", "+", "-", "@")


def stripped_name(said: str) -> str:
    """Give a name in its composed form, without white space around it and without one pair of quotation marks."""
    name = " ".join(unicodedata.normalize("NFC", said).split(" ")).strip()
    if len(name) > 2 and QUOTES.get(name[0]) == name[-1]:
        name = name[1:-1].strip()
    return name


def proposal_problem(name: str, *, languages: Sequence[str]) -> tuple[str, str] | None:
    """Give the reason and the detail why a proposed name cannot be used; None when it can.

    A proposal has nothing but its name, so it is held to more than the label of an item is.
    """
    if len(name) > MOST_CHARACTERS:
        return "malformed name", f"{len(name)} characters"
    if any(character in NEVER_IN_A_NAME for character in name) or name.startswith(BEGINS_A_FORMULA) or "://" in name:
        return "malformed name", "characters that no name has"
    odd = [kind for kind in suspicious(name) if kind not in HARMLESS]
    if odd:
        return "malformed name", f"looks like {', '.join(odd)}"
    if len(name.split()) > MOST_WORDS:
        return "malformed name", f"{len(name.split())} words"
    if not folded(name):
        return "no usable label", ""
    return name_problem(name, languages=languages)


def accents_agree(one: str, other: str) -> bool:
    """Tell whether two folded names may be two spellings of one: word by word equal, or written bare on one side.

    So `pate` may be `pâté`, and `pâte` may not. Marks on letters of other scripts are no accents, and must be equal.
    """
    words, others = one.split(), other.split()
    return len(words) == len(others) and all(map(spelled_alike, words, others))


def spelled_alike(word: str, other: str) -> bool:
    """Tell whether two words are equal, or one is the other without any accent."""
    return word == other or without_accents(word) == other or word == without_accents(other)


def artifact_slug(name: str, *, concept: str, country: str, taken: Container[str]) -> str:
    """Make the id of an artifact that no graph knows: of its folded name, in whatever script that is.

    Another artifact of that name adds its concept, then its country, then a number.
    """
    plain = SLUG + folded(name).replace(" ", "-")
    wished = [plain, f"{plain}-{concept}", f"{plain}-{concept}-{country.casefold()}"]
    free = next((wish for wish in wished if wish not in taken), None)
    if free is not None:
        return free
    return next(f"{wished[-1]}-{number}" for number in count(2) if f"{wished[-1]}-{number}" not in taken)
