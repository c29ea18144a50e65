"""Names that a model proposes: which can be used, which two are one, and the id of what no graph knows."""

import unicodedata
from collections.abc import Container, Iterator, Sequence
from itertools import count

from culturekit.builders.folded_names import ACCENTED_SCRIPTS, folded
from culturekit.builders.name_rules import name_problem
from culturekit.llm.suspicion import suspicious

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
    """Tell whether two folded names may be two spellings of one: letter by letter, equal accents, or none on one side.

    So `pate` may be `pâté`, and `pâte` may not. Marks on letters of other scripts are no accents, and must be equal.
    """
    pairs = list(letters(one)), list(letters(other))
    if len(pairs[0]) != len(pairs[1]):
        return False
    for (letter, marks), (its_letter, its_marks) in zip(*pairs, strict=True):
        if letter != its_letter:
            return False
        if marks != its_marks and (
            not unicodedata.name(letter, "").startswith(ACCENTED_SCRIPTS) or (marks and its_marks)
        ):
            return False
    return True


def letters(name: str) -> Iterator[tuple[str, str]]:
    """Take a name apart into letters and the marks on each."""
    letter, marks = "", ""
    for character in unicodedata.normalize("NFD", name):
        if unicodedata.combining(character) and letter:
            marks += character
            continue
        if letter:
            yield letter, marks
        letter, marks = character, ""
    if letter:
        yield letter, marks


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
