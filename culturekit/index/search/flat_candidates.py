"""The rows that could be among the best of some queries, kept while blocks of rows pass by."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.index.search.search import LARGEST_NORM, Found, Order, Rows, exact_scores, nothing_found, ranked

Products: TypeAlias = NDArray[Any]
"""What a scan gives, (rows, queries): float32, or whole numbers with a scale."""

LARGEST_GROUP = 32
WAITING_PER_QUERY = 64
"""How many candidates of a query may wait, at the least, before they are looked at more closely."""

PAIRS_AT_ONCE = 256
MANY = 64
"""Candidates of a query, on average, from which on one looks for vectors that are equal."""


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
    group = LARGEST_GROUP
    while group > 1 and rows // group < 2 * k:
        group //= 2
    return group


@dataclass(frozen=True, slots=True)
class Scale:
    """What whole numbers mean, and how far they may lie from the score.

    A number of group g and query q means `groups[g] * queries[q] + offsets[q]`; to the error of the query,
    `lost[g] * norms[q]` is added.
    """

    groups: NDArray[np.float32]
    lost: NDArray[np.float32]
    queries: NDArray[np.float32]
    offsets: NDArray[np.float32]
    norms: NDArray[np.float32]


@dataclass(slots=True)
class Candidates:
    """What of the rows seen so far could be among the k best of some queries.

    Attributes:
        vectors: all rows.
        queries: float32 (n, dim).
        k: how many are sought; no more than there are rows to see.
        order: breaks ties.
        error: for each query, how far a product may lie from the score, but for what its scale adds.
        coarse: whether products in float32 would tell more than those of the scan.
        best: (k, n), the k best products of different groups of rows, less their error: at least k rows reach the
            least of them, so that a row is out whose product and error together do not.
        proven: what the k-th best score reaches for certain, from candidates looked at more closely.
        reaches: the products of candidates that wait, and their error on top.
    """

    vectors: Vectors
    queries: Vectors
    k: int
    order: Order | None
    error: NDArray[np.float32]
    coarse: bool = False
    best: NDArray[np.float32] = field(init=False)
    proven: NDArray[np.float32] = field(init=False)
    limit: int = field(init=False)
    owners: list[Rows] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    reaches: list[Vectors] = field(default_factory=list)
    waiting: int = 0
    close: tuple[Rows, Rows, Vectors] = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing seen."""
        count = len(self.queries)
        self.best = np.full((self.k, count), -np.inf, np.float32)
        self.proven = np.full(count, -np.inf, np.float32)
        self.limit = max(WAITING_PER_QUERY, 4 * self.k) * count
        self.close = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)

    def floor(self) -> NDArray[np.float32]:
        """Say what a row among the best must be able to reach."""
        floor: NDArray[np.float32] = np.maximum(self.best[0], self.proven)
        return floor

    def offer(self, products: Products, rows: Rows | int, *, group: int, scale: Scale | None = None) -> None:
        """Look at products (rows, queries); `rows` numbers the rows, or the first where they follow on."""
        grouped = in_groups(products, group)
        most, error = grouped.max(axis=1), self.error
        if scale is not None:
            most = most.astype(np.float32)
            most *= scale.groups[:, None] * scale.queries
            most += scale.offsets
            error = scale.lost[:, None] * scale.norms + error
        self.raise_best(most - error)
        most += error
        floor = self.floor()
        groups, owners = np.divmod(np.flatnonzero(most >= floor), len(floor))
        if not len(groups):
            return
        near = grouped[groups, :, owners]
        if scale is None:
            near += error[owners, None]
        else:
            near = near.astype(np.float32)
            near *= (scale.groups[groups] * scale.queries[owners])[:, None]
            near += (scale.offsets[owners] + error[groups, owners])[:, None]
        at = np.flatnonzero(near >= floor[owners, None])
        hit, place = np.divmod(at, group)
        places = groups[hit] * group + place
        inside = places < len(products)
        hit, places, reaches = hit[inside], places[inside], near.ravel()[at[inside]]
        self.take(owners[hit], places + rows if isinstance(rows, int) else rows[places], reaches)

    def take(self, owners: Rows, rows: Rows, reaches: Vectors) -> None:
        """Keep candidates; when many wait, they are looked at."""
        self.owners.append(owners)
        self.rows.append(rows)
        self.reaches.append(reaches)
        self.waiting += len(owners)
        if self.waiting > self.limit:
            self.look_closer()

    def raise_best(self, most: NDArray[np.float32]) -> None:
        """Take the best products of more groups into account."""
        touched = np.flatnonzero((most > self.best[0]).any(axis=0))
        if len(touched):
            both = np.concatenate([self.best[:, touched], most[:, touched]])
            both.partition(len(most), axis=0)
            self.best[:, touched] = both[len(most) :]

    def look_closer(self) -> None:
        """Give waiting candidates their products in float32, and keep those that could be among the best."""
        none = np.empty(0, np.int64)
        owners, rows = np.concatenate([none, *self.owners]), np.concatenate([none, *self.rows])
        reaches = np.concatenate([np.empty(0, np.float32), *self.reaches])
        near = np.flatnonzero(reaches >= self.floor()[owners])
        near = near[in_order(owners[near])]
        owners, rows = owners[near], rows[near]
        self.owners, self.rows, self.reaches, self.waiting = [], [], [], 0
        if self.coarse:
            products = float32_products(self.queries, self.vectors, owners, rows)
        else:
            products = reaches[near] - self.error[owners]
        owners, rows = np.concatenate([self.close[0], owners]), np.concatenate([self.close[1], rows])
        products = np.concatenate([self.close[2], products])
        by_owner = in_order(owners)
        owners, rows, products = owners[by_owner], rows[by_owner], products[by_owner]
        fine = np.float32(scan_error(self.queries.shape[1]))
        least = kth_best(owners, products, queries=len(self.queries), k=self.k) - fine
        self.proven = np.maximum(self.proven, least)
        kept = products >= self.proven[owners] - fine
        self.close = owners[kept], rows[kept], products[kept]
        if len(self.close[0]) > self.limit:
            self.keep_k()

    def keep_k(self) -> None:
        """Keep no more than k candidates of each query, by their scores: many are equal or nearly so."""
        found = self.best_of_close()
        kept_owners, places = np.nonzero(found.rows >= 0)
        self.close = kept_owners, found.rows[kept_owners, places], found.scores[kept_owners, places]
        last = found.scores[:, self.k - 1]
        self.proven = np.maximum(self.proven, last)

    def best_of_close(self) -> Found:
        """Give the candidates that were looked at their scores, and rank them."""
        owners, rows, _ = self.close
        scores = scores_once(self.queries, self.vectors, owners, rows)
        return ranked(len(self.queries), self.k, owners=owners, rows=rows, scores=scores, order=self.order)

    def finish(self, k: int) -> Found:
        """Give the k best of each query, once all rows were seen."""
        self.look_closer()
        some, found = self.best_of_close(), nothing_found(len(self.queries), k)
        found.scores[:, : self.k], found.rows[:, : self.k] = some.scores, some.rows
        return found


def in_groups(products: Products, group: int) -> Products:
    """See products (rows, queries) as (groups, group, queries), filled up with what never counts."""
    missing = -len(products) % group
    if missing:
        lowest = -np.inf if products.dtype.kind == "f" else np.iinfo(products.dtype).min // 2
        filling = np.full((missing, products.shape[1]), lowest, products.dtype)
        products = np.concatenate([products, filling])
    return products.reshape(-1, group, products.shape[1])


def in_order(owners: Rows) -> Rows:
    """Give the places that sort owners, of which there are few: counting sorts them."""
    places: Rows = np.argsort(owners.astype(np.uint16), kind="stable")
    return places


def kth_best(owners: Rows, products: Vectors, *, queries: int, k: int) -> NDArray[np.float32]:
    """Give the k-th best product of each query; -inf where there are fewer; owners ascend."""
    starts = np.searchsorted(owners, np.arange(queries + 1))
    counts = np.diff(starts)
    least = np.full(queries, -np.inf, np.float32)
    enough = np.flatnonzero(counts >= k)
    if len(enough):
        padded = np.full((queries, counts.max()), -np.inf, np.float32)
        padded[owners, np.arange(len(owners)) - starts[owners]] = products
        width = padded.shape[1]
        least[enough] = np.partition(padded[enough], width - k, axis=1)[:, width - k]
    return least


def float32_products(queries: Vectors, vectors: Vectors, owners: Rows, rows: Rows) -> Vectors:
    """Multiply pairs of vectors in float32; owners ascend."""
    products = np.empty(len(rows), np.float32)
    starts = np.searchsorted(owners, np.arange(len(queries) + 1)).tolist()
    for query, start, stop in zip(queries, starts[:-1], starts[1:], strict=True):
        for first in range(start, stop, PAIRS_AT_ONCE):
            some = slice(first, min(first + PAIRS_AT_ONCE, stop))
            np.matmul(vectors[rows[some]], query, out=products[some])
    return products


def scores_once(queries: Vectors, vectors: Vectors, owners: Rows, rows: Rows) -> Vectors:
    """Score pairs; where there are many, vectors that are equal are scored once."""
    if len(rows) < MANY * len(queries):
        return exact_scores(queries, vectors, owners=owners, rows=rows)
    different, place = np.unique(rows, return_inverse=True)
    first = different[first_equal(vectors[different])][place]
    pairs, back = np.unique(np.stack([owners, first]), axis=1, return_inverse=True)
    return exact_scores(queries, vectors, owners=pairs[0], rows=pairs[1])[back]


def first_equal(vectors: Sequence[Any] | Vectors) -> Rows:
    """Say for each vector which is the first that has the same bytes."""
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(np.asarray(vector).tobytes(), place) for place, vector in enumerate(vectors)])
