"""Exact search: every query against every vector; engines differ in speed, never in what is found."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from culturekit.contract import Contract, hold, shown
from culturekit.errors import UsageError
from culturekit.index.encoder import Vectors
from culturekit.index.search.search_found import Found, Order, Searcher, exact_scores, nothing_found, ranked
from culturekit.index.search.search_inputs import all_rows, checked_order, checked_queries, checked_vectors
from culturekit.registry import Entry, Registry

__all__ = [
    "ENGINES",
    "Found",
    "SearchEngine",
    "Searcher",
    "best_by_hand",
    "exact_scores",
    "searcher",
]

SearchEngine: TypeAlias = Literal["auto", "numpy", "faiss", "faiss-gpu", "torch"] | str
"""Who searches; a device may follow torch, as in `torch:cuda:1`."""


def found_rows(_: object, answer: object, queries: Vectors, *, k: int, slices: Sequence[slice] | None = None) -> Found:
    """Take k rows for each query, and their scores."""
    del slices
    hold(isinstance(answer, Found), "Found", shown(answer))
    found: Found = answer  # type: ignore[assignment]
    shape = (len(queries), k)
    hold(found.scores.shape == shape == found.rows.shape, f"{shape}", f"{found.scores.shape}, {found.rows.shape}")
    return found


ENGINES: Registry[Searcher] = Registry(
    "search",
    [
        Entry(
            "auto", "culturekit.index.search.flat_choice:make", "the fastest of those installed, on the device there is"
        ),
        Entry("numpy", "culturekit.index.search.flat_numpy:make", "float32 products in NumPy"),
        Entry("faiss", "culturekit.index.search.flat_faiss:make", "FAISS on the CPU", extra="faiss-cpu"),
        Entry("faiss-gpu", "culturekit.index.search.flat_faiss:make", "FAISS on a GPU", extra="faiss-gpu"),
        Entry("torch", "culturekit.index.search.flat_torch:make", "torch: 8 bits on a CPU, 16 on a GPU", extra="embed"),
    ],
    point="search",
    contract=Contract((Searcher,), answers={"best": found_rows}),
)


def searcher(vectors: Vectors, *, engine: SearchEngine = "auto", order: Order | None = None) -> Searcher:
    """Make vectors searchable.

    Args:
        vectors: float32 (n, dim), unit norm; may be a memory map.
        engine: who searches; `auto` takes the fastest. What is found is the same.
        order: int64 (n,), all different: among equal scores the lower goes first; row numbers where none is given.

    Example:
        >>> import numpy as np
        >>> vectors = np.eye(3, dtype=np.float32)
        >>> ck.searcher(vectors, engine="numpy").best(vectors[1:2], k=1).rows.tolist()
        [[1]]
    """
    if not isinstance(vectors, np.ndarray):
        raise UsageError("the vectors cannot be searched", expected="float32 (n, dim)", found=type(vectors).__name__)
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
