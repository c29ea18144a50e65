"""What a descriptor is: a short phrase in Latin letters, of one or more styles, necessary or optional."""

import re
import unicodedata
from dataclasses import dataclass

from culturekit.llm.untrusted.untrusted import strip_hidden

__all__ = [
    "LONGEST",
    "MOST_WORDS",
    "NECESSITIES",
    "STYLES",
    "Descriptor",
    "joined_styles",
    "read_descriptor",
    "token_problem",
]

STYLES = ("traditional", "modern", "neutral")
NECESSITIES = ("necessary", "optional")

MOST_WORDS = 7
"""Models are asked for one to four words; published descriptors have up to seven."""

LONGEST = 80
"""Letters of a descriptor: the published ones have half as many."""

BETWEEN_STYLES = re.compile(r"\s*(?:[|/,]|\bor\b|\band\b)\s*")


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A descriptor as it is kept; `note` says what was read otherwise than it was written."""

    token: str
    style: str
    necessity: str
    note: str = ""


def read_descriptor(token: str, style: str, necessity: str) -> Descriptor:
    """Read a descriptor; a style or a necessity that is none is read as the one that claims least."""
    said = [part for part in BETWEEN_STYLES.split(style.strip().casefold()) if part]
    known = [part for part in said if part in STYLES]
    needed = necessity.strip().casefold()
    notes = []
    if not known or len(known) < len(said):
        notes.append(f"style {style[:40]!r}")
    if needed not in NECESSITIES:
        notes.append(f"necessity {necessity[:40]!r}")
    shown = unicodedata.normalize("NFC", " ".join(strip_hidden(token).split())).removesuffix(".")
    return Descriptor(
        shown,
        joined_styles(*(known or ["neutral"])),
        needed if needed in NECESSITIES else "optional",
        f"no such {' and '.join(notes)}" if notes else "",
    )


def joined_styles(*styles: str) -> str:
    """Join styles, each once, in the order in which they come: `traditional|modern`."""
    return "|".join(dict.fromkeys(part for style in styles for part in style.split("|")))


def token_problem(token: str) -> str:
    """Say why a text is no descriptor; empty where it is one."""
    if not any(letter.isalpha() for letter in token):
        return "nothing said"
    if len(token.split()) > MOST_WORDS:
        return f"more than {MOST_WORDS} words"
    if len(token) > LONGEST:
        return f"more than {LONGEST} letters"
    if not all(unicodedata.name(letter, "").startswith("LATIN") for letter in token if letter.isalpha()):
        return "not in Latin letters"
    return ""
