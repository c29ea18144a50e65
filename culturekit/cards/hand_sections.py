"""What people say about a release: the sections of `card.md` and what belongs into each."""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["EMPTY_WORDS", "MARKER", "SECTIONS", "is_empty"]

MARKER = "FILL IN"
"""Stands where only the publisher can know; `card check` fails while it is there."""

EMPTY_WORDS = frozenset({"", "todo", "tbd", "n/a", "na", "none", "xxx", "fixme", "unknown", "lorem ipsum"})

SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "Motivation": "Why the release was made, by whom it was paid for, and which gap it fills.",
        "Intended uses": "What it is made for.",
        "Unsuitable uses": "What it must not, or cannot, be used for.",
        "Known biases": "Whom it shows too much, too little or wrongly, and why.",
        "Limitations": "What is missing, and what was not checked.",
        "Sensitive content": "What could hurt or identify people, and what was done about it.",
        "Annotators and pay": "Who judged, how they were found, where they live, and what they were paid per hour.",
        "Social impact": "Who gains and who could be harmed.",
        "Maintenance": "Who keeps it, how mistakes are reported, and when the next release is due.",
        "Licence decisions": "Which licence, why, and what the sources ask for.",
    }
)
"""By heading, what a person is asked to write below it."""


def is_empty(text: str | None) -> bool:
    """Tell whether a field says nothing: blank, only punctuation, a placeholder, or still marked."""
    if text is None or MARKER in text:
        return True
    words = text.strip().strip(".-…*_ ").lower()
    return words in EMPTY_WORDS or not any(character.isalnum() for character in words)
