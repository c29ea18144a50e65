"""Whether a sentence is grammatical in a dialect: a protocol, rules of our own, and an adapter for Multi-VALUE."""

import importlib
import re
from itertools import pairwise
from typing import Any, Protocol

from culturekit.errors import UsageError
from culturekit.generation.linguistic_lists import article
from culturekit.registry import Entry, Registry, Spec

__all__ = ["GRAMMARS", "GrammarChecker", "MultiValue", "Rules"]

DETERMINERS = "a an the his her their my your our its this that these those"
SINGLE = frozenset(("a", "an", "this", "that"))
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d+")
OF_DIALECTS = {
    "AAE": "AfricanAmericanVernacular",
    "AAVE": "AfricanAmericanVernacular",
    "Singlish": "ColloquialSingapore",
}
"""What Multi-VALUE calls dialects."""


class GrammarChecker(Protocol):
    """Says what is wrong with a sentence in a dialect; nothing where nothing is."""

    name: str

    def problem(self, sentence: str, counterpart: str, dialect: str) -> str:
        """Look at a sentence, beside its counterpart in the standard dialect."""


class Rules:
    """A few rules that hold in every dialect of English: articles, doubled words, words that are none."""

    name = "rules"

    def problem(self, sentence: str, counterpart: str, dialect: str) -> str:
        """Say which rule a sentence breaks."""
        del counterpart, dialect
        words = WORD.findall(sentence)
        if len(words) < 2 or re.search(r"[{}<>\[\]@#\\]", sentence):
            return "no sentence of words"
        for first, second in pairwise(words):
            low, after = first.casefold(), second.casefold()
            if low == after:
                return f"the word {first!r} stands twice"
            if low in DETERMINERS.split() and after in DETERMINERS.split():
                return f"two words like {first!r} and {second!r} follow each other"
            if low in ("a", "an") and article(after) != f"{low} {after}" and not after.startswith("ho"):
                return f"{first!r} before {second!r}"
            if low in SINGLE and plural(after):
                return f"{first!r} before {second!r}, which are many"
        return ""


def plural(word: str) -> bool:
    """Guess whether a noun stands for several."""
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))


class MultiValue:
    """Multi-VALUE: what its rules make of the standard sentence, with the noun exchanged, or what they leave alone."""

    name = "multi-value"

    def __init__(self, dialects: Any) -> None:  # noqa: ANN401 - the module of Multi-VALUE
        """Take the module with its dialects."""
        self.dialects = dialects

    def problem(self, sentence: str, counterpart: str, dialect: str) -> str:
        """Say that the rules of the dialect would have it otherwise."""
        kind = getattr(self.dialects, OF_DIALECTS.get(dialect, dialect), None)
        if kind is None:
            raise UsageError(
                "Multi-VALUE knows no such dialect", found=dialect, expected=", ".join(sorted(OF_DIALECTS))
            )
        rules = kind()
        said, shift = counterpart.split(), sentence.split()
        if plain(rules.transform(sentence)) == plain(sentence):
            return ""
        made = rules.transform(counterpart)
        for old, new in exchanged(said, shift):
            made = made.replace(old, new)
        return "" if plain(made) == plain(sentence) else f"its rules make {made!r} of it"


def exchanged(standard: list[str], other: list[str]) -> list[tuple[str, str]]:
    """Find what stands in the one sentence in place of what stands in the other: all between their common ends."""
    shared = min(len(standard), len(other))
    begin = next((at for at in range(shared) if standard[at] != other[at]), shared)
    end = next((at for at in range(shared - begin) if standard[-1 - at] != other[-1 - at]), shared - begin)
    return [(" ".join(standard[begin : len(standard) - end]), " ".join(other[begin : len(other) - end]))]


def plain(sentence: str) -> str:
    """Give a sentence in small letters, with one space between words."""
    return " ".join(sentence.casefold().split()).rstrip(".")


def make_rules(spec: Spec) -> GrammarChecker:
    """Make our own rules."""
    del spec
    return Rules()


def make_multi_value(spec: Spec) -> GrammarChecker:
    """Make the adapter, where Multi-VALUE is installed."""
    del spec
    try:
        return MultiValue(importlib.import_module("multivalue").Dialects)
    except ImportError as error:
        raise UsageError("Multi-VALUE is not installed", found=str(error),
                         hint="Install it (pip install value-nlp), or take --grammar rules.") from error  # fmt: skip


GRAMMARS: Registry[GrammarChecker] = Registry(
    "grammar",
    [
        Entry("rules", f"{__name__}:make_rules", "articles, doubled words and words that are none, in any dialect"),
        Entry("multi-value", f"{__name__}:make_multi_value", "the rules of Multi-VALUE, where it is installed"),
    ],
    point="grammar",
)
"""The checkers that culturekit knows by name."""
