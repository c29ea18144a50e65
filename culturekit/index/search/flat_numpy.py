"""Flat search in NumPy: products in float32, block by block, and exact scores for all that could be among the best."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from culturekit.core.registry import Spec
from culturekit.index.encoder import Vectors
from culturekit.index.search.flat_candidates import Candidates, group_for, scan_error
from culturekit.index.search.search import (
    Block,
    Found,
    Order,
    all_rows,
    blocks_of,
    checked_order,
    checked_queries,
    checked_vectors,
    nothing_found,
)

QUERIES_AT_ONCE = 256
PRODUCTS_AT_ONCE = 2048 * QUERIES_AT_ONCE
"""2 MB of products: they stay in the cache until they were looked at."""

MOST_ROWS_AT_ONCE = 32_768


class Multiply(Protocol):
    """Multiplies matrices in float32."""

    def __call__(self, block: Block, queries: Vectors, /, *, out: Vectors) -> object:
        """Write the products of a block with queries, (rows, queries), to `out`."""
        ...


def multiply(block: Block, queries: Vectors, /, *, out: Vectors) -> None:
    """Multiply in NumPy, with as many threads as its BLAS takes."""
    np.matmul(block.vectors, queries.T, out=out)


class NumpySearcher:
    """Searches with NumPy; `vectors` may be a memory map, of which only blocks are read."""

    name = "numpy"

    def __init__(self, vectors: Vectors, *, order: Order | None = None) -> None:
        """Check the vectors once."""
        self.vectors = checked_vectors(vectors)
        self.order = checked_order(order, vectors)
        self.error = np.float32(scan_error(vectors.shape[1]))

    def best(self, queries: Vectors, *, k: int, slices: Sequence[slice] | None = None) -> Found:
        """Find the k best rows of each query."""
        queries = checked_queries(queries, self.vectors, k)
        runs = all_rows(slices, len(self.vectors))
        reached = min(k, sum(stop - start for start, stop in runs))
        found = nothing_found(len(queries), k)
        if not reached or not len(queries):
            return found
        parts = [slice(start, start + QUERIES_AT_ONCE) for start in range(0, len(queries), QUERIES_AT_ONCE)]
        seen = [self.begin(queries[part], reached) for part in parts]
        self.scan(seen, runs)
        for part, candidates in zip(parts, seen, strict=True):
            some = candidates.finish(k)
            found.scores[part], found.rows[part] = some.scores, some.rows
        return found

    def scan(self, seen: Sequence[Candidates], runs: Sequence[tuple[int, int]], multiply: Multiply = multiply) -> None:
        """Let runs of rows pass by queries: each block of rows by all of them, while it is in the cache."""
        size = min(MOST_ROWS_AT_ONCE, PRODUCTS_AT_ONCE // max(len(candidates.queries) for candidates in seen))
        room = np.empty(PRODUCTS_AT_ONCE, np.float32)
        for block in blocks_of(self.vectors, runs, size):
            count = len(block.vectors)
            for candidates in seen:
                out = room[: count * len(candidates.queries)].reshape(count, -1)
                multiply(block, candidates.queries, out=out)
                candidates.offer(out, block.numbers, group=group_for(count, candidates.k))

    def begin(self, queries: Vectors, k: int) -> Candidates:
        """Start with nothing seen."""
        error = np.full(len(queries), self.error, np.float32)
        return Candidates(self.vectors, queries, k, self.order, error)


def make(spec: Spec, *, vectors: Vectors, order: Order | None) -> NumpySearcher:
    """Make the searcher; it takes no options."""
    spec.refuse_options()
    return NumpySearcher(vectors, order=order)
