"""Exact search: every query against every vector; engines differ in speed, never in what is found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.index.search_found import Found, Order, Searcher, exact_scores, nothing_found, ranked
from culturekit.index.search_inputs import all_rows, checked_order, checked_queries, checked_vectors
from culturekit.records.choices import Aggregate
from culturekit.registry import Entry, Registry

__all__ = [
    "ENGINES",
    "ArtifactVectors",
    "Found",
    "SearchEngine",
    "Searcher",
    "best_by_hand",
    "exact_scores",
    "nearest",
    "searcher",
]

SearchEngine: TypeAlias = Literal["auto", "numpy", "faiss", "faiss-gpu", "torch"] | str
"""Who searches; a device may follow torch, as in `torch:cuda:1`."""

ENGINES: Registry[Searcher] = Registry(
    "search",
    [
        Entry("auto", "culturekit.index.flat_choice:make", "the fastest of those installed, on the device there is"),
        Entry("numpy", "culturekit.index.flat_numpy:make", "float32 products in NumPy"),
        Entry("faiss", "culturekit.index.flat_faiss:make", "FAISS on the CPU", extra="faiss-cpu"),
        Entry("faiss-gpu", "culturekit.index.flat_faiss:make", "FAISS on a GPU", extra="faiss-gpu"),
        Entry("torch", "culturekit.index.flat_torch:make", "torch: 8 bits on a CPU, 16 on a GPU", extra="embed"),
    ],
)


def searcher(vectors: Vectors, *, engine: SearchEngine = "auto", order: Order | None = None) -> Searcher:
    """Make vectors searchable.

    Args:
        vectors: float32 (n, dim), unit norm; may be a memory map.
        engine: who searches; `auto` takes the fastest. What is found is the same.
        order: int64 (n,), all different: among equal scores the lower goes first; row numbers where none is given.
    """
    return ENGINES.make(engine, vectors=vectors, order=order)


def best_by_hand(
    vectors: Vectors,
    queries: Vectors,
    *,
    k: int,
    order: Order | None = None,
    slices: Sequence[slice] | None = None,
) -> Found:
    """Find the k best rows of each query by scoring all of them: slow, short, and what the engines must equal."""
    order = checked_order(order, checked_vectors(vectors))
    queries = checked_queries(queries, vectors, k)
    runs = all_rows(slices, len(vectors))
    rows = np.concatenate([np.empty(0, np.int64), *(np.arange(start, stop) for start, stop in runs)])
    found = nothing_found(len(queries), k)
    for number in range(len(queries)):
        owners = np.full(len(rows), number)
        scores = exact_scores(queries, vectors, owners=owners, rows=rows)
        best = ranked(1, k, owners=np.zeros_like(rows), rows=rows, scores=scores, order=order)
        found.scores[number], found.rows[number] = best.scores[0], best.rows[0]
    return found


@dataclass(frozen=True, slots=True)
class ArtifactVectors:
    """The vectors of an index, sorted by artifact: artifact a has rows `starts[a]:starts[a + 1]`."""

    vectors: Vectors
    starts: NDArray[np.int64]

    def scores(self, queries: Vectors, aggregate: Aggregate) -> NDArray[np.float32]:
        """Score queries (n, dim) against all artifacts: (n, n_artifacts), the best or the mean of the best three."""
        similarity = queries @ self.vectors.T
        if aggregate == "max":
            best: NDArray[np.float32] = np.maximum.reduceat(similarity, self.starts[:-1], axis=1)
            return best
        parts = np.split(similarity, self.starts[1:-1], axis=1)
        return np.stack([top_mean(part, 3) for part in parts], axis=1)


def top_mean(similarity: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """Average the `count` largest of each row, or all when there are fewer."""
    mean: NDArray[np.float32] = np.sort(similarity, axis=1)[:, -count:].mean(axis=1)
    return mean


def nearest(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Give the k best columns of each row, best first; equal scores keep the order of the columns."""
    order: NDArray[np.int64] = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order
