"""Descriptors as phrases: when two are the same, and lists of them in flat arrays."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["PhraseLists", "normalise_phrase", "phrase_lists"]


def normalise_phrase(text: str) -> str:
    """Write a phrase in the one form that equal phrases share.

    Unicode NFC, then casefold, then NFC again because casefolding can decompose, then runs of white space to
    one space, none at the ends.
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return " ".join(folded.split())


@dataclass(frozen=True, slots=True)
class PhraseLists:
    """Many lists of phrases, one after the other.

    Attributes:
        phrases: int64, (total,): numbers of phrases, such as rows of an array of vectors.
        starts: int64, (n_lists + 1,): where each list begins; list i is phrases[starts[i]:starts[i + 1]].
    """

    phrases: NDArray[np.int64]
    starts: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How long each list is, int64 (n_lists,)."""
        return np.diff(self.starts)


def phrase_lists(lists: Sequence[Sequence[int]]) -> PhraseLists:
    """Put lists of phrase numbers into flat arrays; a phrase that a list repeats counts once."""
    distinct = [np.unique(np.asarray(each, dtype=np.int64)) for each in lists]
    starts = np.concatenate([[0], np.cumsum([len(each) for each in distinct], dtype=np.int64)])
    phrases = np.concatenate(distinct) if distinct else np.empty(0, np.int64)
    return PhraseLists(phrases, starts.astype(np.int64))
