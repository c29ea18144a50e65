"""Exact search in NumPy: float32 products block by block, and exact scores for every row that could be among the best.

`Candidates` is the core of every exact search here, also of the mapping, whose scores are of artifacts and not of rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from culturekit.core.registry import Spec
from culturekit.index.encoder import Vectors
from culturekit.index.search.search import (
    LARGEST_NORM,
    Found,
    Order,
    Rows,
    all_rows,
    blocks_of,
    checked_order,
    checked_queries,
    checked_vectors,
    exact_scores,
    nothing_found,
    ranked,
)

_LARGEST_GROUP = 32
_WAITING_PER_QUERY = 64  # how many candidates of a query may wait, at the least, before they are looked at more closely
_MANY = 64  # candidates of a query, on average, from which on one looks for vectors that are equal


def scan_error(dim: int) -> float:
    """Bound how far a float32 product of unit vectors can lie from their score, whatever the order of adding.

    Adding `dim` products in float32 errs by at most dim * u / (1 - dim * u) times the norms, with u = 2^-24
    (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1); a product below the smallest normal
    number may be lost, 2^-126 at most. Rounding the score to float32, and adding bounds up, cost the units on top.
    """
    unit = 2.0**-24
    adding = dim * unit / (1 - dim * unit)
    return 1.001 * (adding + 4 * unit) * LARGEST_NORM**2 + dim * 2.0**-125


def group_for(rows: int, k: int) -> int:
    """Decide how many rows of a block are first looked at as one: the more, the fewer numbers; k groups are needed."""
    group = _LARGEST_GROUP
    while group > 1 and rows // group < 2 * k:
        group //= 2
    return group


@dataclass(slots=True)
class Candidates:
    """Keeps the rows that could be among the k best of some queries while products of blocks of rows pass by."""

    k: int  # how many are sought; no more than there are rows to see
    error: NDArray[np.float32]  # for each query, how far a product may lie from the score
    score: Callable[[Rows, Rows], Vectors]  # gives pairs of a query and a row their exact score
    order: Order | None = None  # breaks ties
    # (k, n), the k best products of different groups of rows, less their error: at least k rows reach the least of
    # them, so that a row is out whose product and error together do not
    best: NDArray[np.float32] = field(init=False)
    proven: NDArray[np.float32] = field(init=False)  # the k-th best score among candidates that were scored
    limit: int = field(init=False)
    # queries, rows, and products with their error on top, of candidates that wait
    waiting: list[tuple[Rows, Rows, Vectors]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start with nothing seen."""
        count = len(self.error)
        self.best = np.full((self.k, count), -np.inf, np.float32)
        self.proven = np.full(count, -np.inf, np.float32)
        self.limit = max(_WAITING_PER_QUERY, 4 * self.k) * count

    def floor(self) -> NDArray[np.float32]:
        """Say what a row among the best must be able to reach."""
        floor: NDArray[np.float32] = np.maximum(self.best[0], self.proven)
        return floor

    def offer(self, products: Vectors, rows: Rows, *, group: int) -> None:
        """Look at products (rows, queries) of numbered rows; a product of -inf is never taken."""
        if missing := -len(products) % group:  # fill up with what never counts
            products = np.concatenate([products, np.full((missing, products.shape[1]), -np.inf, np.float32)])
        grouped = products.reshape(-1, group, products.shape[1])
        most = grouped.max(axis=1)
        self.raise_best(most - self.error)
        most += self.error
        floor = self.floor()
        groups, owners = np.divmod(np.flatnonzero(most >= floor), len(floor))
        if not len(groups):
            return
        near = grouped[groups, :, owners]
        near += self.error[owners, None]
        at = np.flatnonzero((near >= floor[owners, None]) & (near > -np.inf))
        hit, column = np.divmod(at, group)
        self.waiting.append((owners[hit], rows[groups[hit] * group + column], near.ravel()[at]))
        if sum(len(part[0]) for part in self.waiting) > self.limit:
            self.look_closer()

    def raise_best(self, most: NDArray[np.float32]) -> None:
        """Take the best products of more groups into account."""
        touched = np.flatnonzero((most > self.best[0]).any(axis=0))
        if len(touched):
            both = np.concatenate([self.best[:, touched], most[:, touched]])
            both.partition(len(most), axis=0)
            self.best[:, touched] = both[len(most) :]

    def look_closer(self) -> None:
        """Keep those of the waiting candidates that could be among the best."""
        owners, rows, reaches = (np.concatenate(parts) for parts in zip(*self.waiting, strict=True))
        near = np.flatnonzero(reaches >= self.floor()[owners])
        owners, rows, reaches = owners[near], rows[near], reaches[near]
        if len(owners) > self.limit:  # many are equal or nearly so: keep k of each query by their scores
            best = self._ranked(owners, rows)
            owners, places = np.nonzero(best.rows >= 0)
            rows, reaches = best.rows[owners, places], best.scores[owners, places]
            self.proven = np.maximum(self.proven, best.scores[:, self.k - 1])
        self.waiting = [(owners, rows, reaches)]

    def _ranked(self, owners: Rows, rows: Rows) -> Found:
        """Give candidates their scores, and rank them."""
        scores = self.score(owners, rows)
        return ranked(len(self.error), self.k, owners=owners, rows=rows, scores=scores, order=self.order)

    def finish(self) -> Found:
        """Give the k best of each query, once all rows were seen."""
        if not self.waiting:
            return nothing_found(len(self.error), self.k)
        self.look_closer()
        owners, rows, _ = self.waiting[0]
        return self._ranked(owners, rows)


def _scores_once(queries: Vectors, vectors: Vectors, owners: Rows, rows: Rows) -> Vectors:
    """Score pairs; where there are many, vectors that are equal are scored once."""
    if len(rows) < _MANY * len(queries):
        return exact_scores(queries, vectors, owners=owners, rows=rows)
    different, inverse = np.unique(rows, return_inverse=True)
    seen: dict[bytes, int] = {}
    equal = [seen.setdefault(np.asarray(vector).tobytes(), n) for n, vector in enumerate(vectors[different])]
    first = different[np.array(equal)][inverse]
    pairs, back = np.unique(np.stack([owners, first]), axis=1, return_inverse=True)
    return exact_scores(queries, vectors, owners=pairs[0], rows=pairs[1])[back]


class FlatSearcher:
    """Searches vectors, which may be a memory map; an engine says how queries are searched for."""

    name: str

    def __init__(self, vectors: Vectors, *, order: Order | None = None) -> None:
        """Check the vectors once."""
        self.vectors = checked_vectors(vectors)
        self.order = checked_order(order, vectors)
        self.error = scan_error(vectors.shape[1])

    def best(self, queries: Vectors, *, k: int, slices: Sequence[slice] | None = None) -> Found:
        """Find the k best rows of each query."""
        queries = np.require(checked_queries(queries, self.vectors, k), requirements=["C", "W"])
        runs = all_rows(slices, len(self.vectors))
        reached = min(k, sum(stop - start for start, stop in runs))
        found = nothing_found(len(queries), k)
        if reached and len(queries):
            for part, some in self.search(queries, reached, runs):
                found.scores[part, :reached], found.rows[part, :reached] = some.scores, some.rows
        return found

    def search(self, queries: Vectors, k: int, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[slice, Found]]:
        """Give the k best rows of some queries after others, of runs that hold so many at least."""
        raise NotImplementedError

    def begin(self, queries: Vectors, k: int) -> Candidates:
        """Start with nothing seen."""
        error = np.full(len(queries), self.error, np.float32)
        return Candidates(k, error, partial(_scores_once, queries, self.vectors), self.order)


def parts_of(count: int, size: int) -> list[slice]:
    """Cut queries into parts."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


_QUERIES_AT_ONCE = 256
_PRODUCTS_AT_ONCE = 2048 * _QUERIES_AT_ONCE  # 2 MB of products: they stay in the cache until they were looked at
_MOST_ROWS_AT_ONCE = 32_768


class NumpySearcher(FlatSearcher):
    """Searches with NumPy; of a memory map only blocks are read."""

    name = "numpy"

    def search(self, queries: Vectors, k: int, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[slice, Found]]:
        """Search block by block: all queries meet a block of rows while it is in the cache."""
        parts = parts_of(len(queries), _QUERIES_AT_ONCE)
        asked = [(queries[part], self.begin(queries[part], k)) for part in parts]
        room = np.empty(_PRODUCTS_AT_ONCE, np.float32)
        size = min(_MOST_ROWS_AT_ONCE, _PRODUCTS_AT_ONCE // max(len(some) for some, _ in asked))
        for vectors, rows in blocks_of(self.vectors, runs, size):
            for some, seen in asked:
                products = np.matmul(vectors, some.T, out=room[: len(rows) * len(some)].reshape(len(rows), -1))
                seen.offer(products, rows, group=group_for(len(rows), k))
        return ((part, seen.finish()) for part, (_, seen) in zip(parts, asked, strict=True))


def make(spec: Spec, *, vectors: Vectors, order: Order | None) -> NumpySearcher:
    """Make the searcher; it takes no options."""
    spec.refuse_options()
    return NumpySearcher(vectors, order=order)
