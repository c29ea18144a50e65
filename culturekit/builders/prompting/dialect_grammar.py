"""Whether a sentence is grammatical in a dialect: a protocol, rules of our own, and an adapter for Multi-VALUE."""

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
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
    "AAE": "AfricanAmericanVernacular", "AAVE": "AfricanAmericanVernacular", "Singlish": "ColloquialSingaporeDialect",
}  # fmt: skip
"""What Multi-VALUE calls dialects; others by the names of its classes, or the first word of them: Irish."""

DRAWS = 64
"""Times that Multi-VALUE is asked at most. Its rules hold by chance, as often as they are attested: version 0.3 leaves
"a man driving his car" as it is in 14 of 100 draws, and what comes in one of ten is missed once in a thousand."""


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
    """Multi-VALUE: what its rules may make of the standard sentence, with the noun exchanged.

    That they leave a sentence alone says nothing: they change what is Standard American, and are no grammar.
    """

    name = "multi-value"

    def __init__(self, dialects: Any) -> None:  # noqa: ANN401 - the module of Multi-VALUE
        """Take the module with its dialects."""
        self.dialects = dialects
        self.loaded: dict[str, Any] = {}

    def problem(self, sentence: str, counterpart: str, dialect: str) -> str:
        """Say that the rules of the dialect would have it otherwise, however chance falls (they seed Python's)."""
        rules = self.rules_of(dialect)
        (old, new), made = exchanged(counterpart.split(), sentence.split()), ""
        try:
            for draw in range(DRAWS):
                rules.set_seed(draw)
                made = rules.transform(counterpart)
                made = re.sub(rf"\b{re.escape(old)}\b", lambda _: new, made) if old else made
                if plain(made) == plain(sentence):
                    return ""
        except (AssertionError, LookupError, ValueError, AttributeError) as error:
            return f"Multi-VALUE cannot read it ({error})"
        return f"its rules make {made!r} of it"

    def rules_of(self, dialect: str) -> Any:  # noqa: ANN401 - a dialect of Multi-VALUE
        """Load a dialect once: with it come a parser and a finder of names."""
        if dialect not in self.loaded:
            names = (OF_DIALECTS.get(dialect, dialect), f"{dialect}Dialect")
            kind = next((found for name in names if (found := getattr(self.dialects, name, None)) is not None), None)
            if kind is None:
                raise UsageError(
                    "Multi-VALUE knows no such dialect", found=dialect,
                    expected=f"{', '.join(sorted(OF_DIALECTS))}, or one of its classes, such as IrishDialect",
                )  # fmt: skip
            with loading():
                self.loaded[dialect] = kind()
        return self.loaded[dialect]


@contextmanager
def loading() -> Iterator[None]:
    """Say what Multi-VALUE lacks: as it is imported and as a dialect is made it downloads what it reads with."""
    try:
        yield
    except (ImportError, OSError, LookupError, SystemExit) as error:
        absent = isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "multivalue"
        raise UsageError(
            "Multi-VALUE is not installed" if absent else "Multi-VALUE cannot be loaded", found=str(error),
            hint="Install it (pip install value-nlp), or take --grammar rules." if absent else
            "It downloads models of spaCy and Stanza and data of NLTK; take --grammar rules where it cannot.",
        ) from error  # fmt: skip


def exchanged(standard: list[str], other: list[str]) -> tuple[str, str]:
    """Find what stands in the one sentence in place of what stands in the other: all between their common ends."""
    shared = min(len(standard), len(other))
    begin = next((at for at in range(shared) if standard[at] != other[at]), shared)
    end = next((at for at in range(shared - begin) if standard[-1 - at] != other[-1 - at]), shared - begin)
    return " ".join(standard[begin : len(standard) - end]), " ".join(other[begin : len(other) - end])


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
    with loading():
        return MultiValue(importlib.import_module("multivalue.Dialects"))


GRAMMARS: Registry[GrammarChecker] = Registry(
    "grammar",
    [
        Entry("rules", f"{__name__}:make_rules", "articles, doubled words and words that are none, in any dialect"),
        Entry("multi-value", f"{__name__}:make_multi_value", "the rules of Multi-VALUE, where it is installed"),
    ],
    point="grammar",
)
"""The checkers that culturekit knows by name."""
