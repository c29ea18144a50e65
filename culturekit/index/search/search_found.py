"""What a search finds, and the one score by which every engine ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors

__all__ = ["Found", "Order", "Rows", "Searcher", "exact_scores", "nothing_found", "ranked"]

Rows: TypeAlias = NDArray[np.int64]
"""Row numbers of vectors, or places of queries."""

Order: TypeAlias = NDArray[np.int64]
"""For each row its place among rows of equal score; the lower goes first."""

PAIRS_AT_ONCE = 128
"""How many pairs of vectors are multiplied at once: half a MB for 512 numbers each, which stays in the cache."""


@dataclass(frozen=True, slots=True)
class Found:
    """The best rows of each query, best first: two arrays (n_queries, k); -inf and -1 where there are fewer rows."""

    scores: Vectors
    rows: Rows


class Searcher(Protocol):
    """Finds the best rows for queries; which engine does it never changes what is found."""

    @property
    def name(self) -> str:
        """Which engine searches, and on what."""
        ...

    def best(self, queries: Vectors, *, k: int, slices: Sequence[slice] | None = None) -> Found:
        """Find the k best rows of each query, among all rows or those of some slices."""
        ...


def exact_scores(queries: Vectors, vectors: Vectors, *, owners: Rows, rows: Rows) -> Vectors:
    """Give the score of each pair, query `owners[i]` and vector `rows[i]`: their product in float64 as float32.

    Products of float32 are exact in float64. They are added by folding the row in half until one number is
    left: the same order on any machine and device, for one pair as for a million, so that the score of a pair
    is the same number everywhere.
    """
    scores = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        some = slice(start, start + PAIRS_AT_ONCE)
        sums = queries[owners[some]].astype(np.float64)
        sums *= vectors[rows[some]]
        width = sums.shape[1]
        while width > 1:
            half = (width + 1) // 2
            sums[:, : width - half] += sums[:, half:width]
            width = half
        scores[some] = sums[:, 0]
    scores += np.float32(0)  # no score is -0
    return scores


def nothing_found(queries: int, k: int) -> Found:
    """Give the answer before anything is found."""
    return Found(np.full((queries, k), -np.inf, np.float32), np.full((queries, k), -1, np.int64))


def ranked(queries: int, k: int, *, owners: Rows, rows: Rows, scores: Vectors, order: Order | None) -> Found:
    """Keep the k best of scored pairs (query `owners[i]`, row `rows[i]`); equal scores go by `order`."""
    ties = rows if order is None else order[rows]
    best_first = np.lexsort((ties, -scores, owners))
    owners, rows, scores = owners[best_first], rows[best_first], scores[best_first]
    places = np.arange(len(owners)) - np.searchsorted(owners, owners)
    kept = places < k
    found = nothing_found(queries, k)
    found.scores[owners[kept], places[kept]] = scores[kept]
    found.rows[owners[kept], places[kept]] = rows[kept]
    return found
