"""Flat search in NumPy: products in float32, block by block, and exact scores for all that could be among the best."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.index.search_found import Found, Order, Rows, exact_scores, nothing_found, ranked
from culturekit.index.search_inputs import (
    LARGEST_NORM,
    Block,
    all_rows,
    blocks_of,
    checked_order,
    checked_queries,
    checked_vectors,
)

__all__ = ["NumpySearcher", "scan_error"]

ROWS_AT_ONCE = 2048
QUERIES_AT_ONCE = 256
GROUP = 64
"""Rows of which only the best product is looked at first."""


def scan_error(dim: int) -> float:
    """Bound how far a float32 product of unit vectors can lie from their score, whatever the order of adding.

    Adding `dim` products in float32 errs by at most dim * u / (1 - dim * u) times the norms, with u = 2^-24
    (Higham, Accuracy and Stability of Numerical Algorithms, 3.5), and each product that falls below the smallest
    normal number by 2^-126; the score itself is rounded once to float32.
    """
    unit = 2.0**-24
    adding = dim * unit / (1 - dim * unit)
    return (adding + unit) * LARGEST_NORM**2 + dim * 2.0**-125


@dataclass(slots=True)
class Candidates:
    """What of the rows seen so far could be among the k best of some queries.

    `best` (k, n) holds the k best products of each query among those of different groups: at least k rows
    reach its least, so a row that lies below it by more than `slack` is out, whatever the rounding.
    """

    queries: Vectors
    best: NDArray[np.float32]
    slack: np.float32
    owners: list[Rows] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    products: list[Vectors] = field(default_factory=list)

    def offer(self, products: Vectors, block: Block) -> None:
        """Look at products (rows of the block, queries)."""
        grouped = in_groups(products)
        most = grouped.max(axis=1)
        touched = np.flatnonzero((most > self.best[0]).any(axis=0))
        if len(touched):
            both = np.concatenate([self.best[:, touched], most[:, touched]])
            both.partition(len(most), axis=0)
            self.best[:, touched] = both[len(most) :]
        least = self.best[0] - self.slack
        groups, owners = np.nonzero(most >= least)
        if not len(groups):
            return
        near = grouped[groups, :, owners]
        hit, place = np.nonzero(near >= least[owners, None])
        places = groups[hit] * GROUP + place
        inside = places < len(block.vectors)
        hit, place, places = hit[inside], place[inside], places[inside]
        self.owners.append(owners[hit])
        self.rows.append(block.numbers(places))
        self.products.append(near[hit, place])

    def taken(self) -> tuple[Rows, Rows]:
        """Give the pairs (query, row) that are still candidates."""
        none = np.empty(0, np.int64)
        owners, rows = np.concatenate([none, *self.owners]), np.concatenate([none, *self.rows])
        products = np.concatenate([np.empty(0, np.float32), *self.products])
        near = products >= self.best[0][owners] - self.slack
        return owners[near], rows[near]


def in_groups(products: Vectors) -> NDArray[np.float32]:
    """See products (rows, queries) as (groups, GROUP, queries), filled up with -inf."""
    missing = -len(products) % GROUP
    if missing:
        products = np.concatenate([products, np.full((missing, products.shape[1]), -np.inf, np.float32)])
    return products.reshape(-1, GROUP, products.shape[1])


class NumpySearcher:
    """Searches with NumPy; `vectors` may be a memory map, of which only blocks are read."""

    name = "numpy"

    def __init__(self, vectors: Vectors, *, order: Order | None = None) -> None:
        """Check the vectors once."""
        self.vectors = checked_vectors(vectors)
        self.order = checked_order(order, vectors)
        self.slack = np.float32(2.001 * scan_error(vectors.shape[1]) + 2.0**-23)

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
        room = np.empty((ROWS_AT_ONCE, QUERIES_AT_ONCE), np.float32)
        for block in blocks_of(self.vectors, runs, ROWS_AT_ONCE):
            for candidates in seen:
                count = len(block.vectors)
                out = room.reshape(-1)[: count * len(candidates.queries)].reshape(count, -1)
                candidates.offer(np.matmul(block.vectors, candidates.queries.T, out=out), block)
        for part, candidates in zip(parts, seen, strict=True):
            some = self.finish(candidates, k)
            found.scores[part], found.rows[part] = some.scores, some.rows
        return found

    def begin(self, queries: Vectors, k: int) -> Candidates:
        """Start with nothing seen."""
        return Candidates(queries, np.full((k, len(queries)), -np.inf, np.float32), self.slack)

    def finish(self, candidates: Candidates, k: int) -> Found:
        """Give candidates their exact scores, and keep the best."""
        owners, rows = candidates.taken()
        scores = exact_scores(candidates.queries, self.vectors, owners=owners, rows=rows)
        return ranked(len(candidates.queries), k, owners=owners, rows=rows, scores=scores, order=self.order)
