"""Exact search: every query against every vector; engines differ in speed, never in what is found."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.core.errors import UsageError
from culturekit.core.plugins import Contract, hold, shown
from culturekit.core.registry import Entry, Registry, Spec
from culturekit.index.encoder import Vectors

# What a search finds, and the one score by which every engine ranks.

Rows: TypeAlias = NDArray[np.int64]  # row numbers of vectors, or places of queries
Order: TypeAlias = NDArray[np.int64]  # for each row its place among rows of equal score; the lower goes first
# how many pairs of vectors are multiplied at once: half a MB for 512 numbers each, which stays in the cache
_PAIRS_AT_ONCE = 128


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

    def best(self, queries: Vectors, *, k: int, slices: Sequence[slice] | None = None) -> Found:
        """Find the k best rows of each query, among all rows or those of some slices."""


def exact_scores(queries: Vectors, vectors: Vectors, *, owners: Rows, rows: Rows) -> Vectors:
    """Give the score of each pair, query `owners[i]` and vector `rows[i]`: their product in float64 as float32.

    Products of float32 are exact in float64. They are added by folding the row in half until one number is
    left: the same order on any machine and device, for one pair as for a million, so that the score of a pair
    is the same number everywhere.
    """
    scores = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _PAIRS_AT_ONCE):
        some = slice(start, start + _PAIRS_AT_ONCE)
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


# What may be searched, and for what: unit vectors of one dimension, an order of rows, slices of rows.

LARGEST_NORM = 1.001  # how long a unit vector may be; half precision leaves no more than that
_ROWS_CHECKED_AT_ONCE = 65_536


def checked_vectors(vectors: Vectors, what: str = "vectors") -> Vectors:
    """Make sure that vectors are float32 (n, dim), finite, of unit norm; a memory map is seen as a plain array."""
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or vectors.dtype != np.float32 or not vectors.shape[1]:
        raise UsageError(
            f"the {what} cannot be searched", expected="float32 (n, dim)", found=f"{vectors.dtype} {vectors.shape}"
        )
    for start in range(0, len(vectors), _ROWS_CHECKED_AT_ONCE):
        some = vectors[start : start + _ROWS_CHECKED_AT_ONCE]
        norms = np.sqrt(np.einsum("ij,ij->i", some, some))
        wrong = np.flatnonzero(~((norms <= LARGEST_NORM) & (norms >= 2 - LARGEST_NORM)))
        if len(wrong):
            finite = bool(np.isfinite(some[wrong[0]]).all())
            raise UsageError(
                f"the {what} are not all unit vectors", where=f"row {start + wrong[0]}", expected="a norm of 1",
                found=f"{norms[wrong[0]]:.6g}" if finite else "a number that is not finite",
            )  # fmt: skip
    return vectors


def checked_queries(queries: Vectors, vectors: Vectors, k: int) -> Vectors:
    """Make sure that queries can be compared with vectors, and that the answer is to hold something."""
    if not isinstance(k, int | np.integer) or k < 1:
        raise UsageError("no search for fewer than one", where="k", expected="1 or more", found=repr(k))
    if not isinstance(queries, np.ndarray):
        raise UsageError("these are no queries", expected="float32 (n, dim)", found=type(queries).__name__)
    if queries.ndim == 2 and queries.shape[1] != vectors.shape[1]:
        raise UsageError(
            "the queries are of another dimension than the vectors: another encoder made them",
            expected=f"{vectors.shape[1]} numbers",
            found=f"{queries.shape[1]}",
        )
    return checked_vectors(queries, "queries")


def checked_order(order: NDArray[np.int64] | None, vectors: Vectors) -> Order | None:
    """Make sure that an order says one place for each row."""
    if order is None:
        return None
    if order.shape != (len(vectors),) or len(np.unique(order)) != len(order):
        raise UsageError(
            "the order of rows does not fit", expected=f"{len(vectors)} different places", found=f"shape {order.shape}"
        )
    return order.astype(np.int64, copy=False)


def all_rows(slices: Sequence[slice] | None, count: int) -> list[tuple[int, int]]:
    """Give the rows of slices as runs (start, stop) in ascending order, each row once."""
    if slices is None:
        return [(0, count)] if count else []
    runs: list[tuple[int, int]] = []
    for start, stop in sorted(_bounds(part, count) for part in slices):
        if runs and start <= runs[-1][1]:
            runs[-1] = runs[-1][0], max(stop, runs[-1][1])
        elif start < stop:
            runs.append((start, stop))
    return runs


def _bounds(part: slice, count: int) -> tuple[int, int]:
    """Give the rows of one slice, which lie within the vectors."""
    start = 0 if part.start is None else int(part.start)
    stop = count if part.stop is None else int(part.stop)
    if not 0 <= start <= stop <= count or part.step not in {None, 1}:
        raise UsageError("a slice lies outside the vectors", expected=f"rows of 0 to {count}", found=str(part))
    return start, stop


def blocks_of(vectors: Vectors, runs: Sequence[tuple[int, int]], size: int) -> Iterator[tuple[Vectors, Rows]]:
    """Cut runs of rows into blocks and their row numbers; rows that follow each other are read where they lie."""
    rows = np.concatenate([np.arange(*run) for run in runs])
    for start in range(0, len(rows), size):
        numbers = rows[start : start + size]
        together = numbers[-1] - numbers[0] == len(numbers) - 1
        yield vectors[numbers[0] : numbers[-1] + 1] if together else vectors[numbers], numbers


# who searches; a device may follow torch, as in `torch:cuda:1`
_SearchEngine: TypeAlias = Literal["auto", "numpy", "faiss", "faiss-gpu", "torch"] | str


def _found_rows(_: object, answer: object, queries: Vectors, *, k: int, slices: Sequence[slice] | None = None) -> Found:
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
        Entry("auto", "culturekit.index.search.search:make", "the fastest of those installed, on the device there is"),
        Entry("numpy", "culturekit.index.search.search:make_numpy", "float32 products in NumPy"),
        Entry("faiss", "culturekit.index.search.flat_faiss:make", "FAISS on the CPU", extra="faiss-cpu"),
        Entry("faiss-gpu", "culturekit.index.search.flat_faiss:make", "FAISS on a GPU", extra="faiss-gpu"),
        Entry("torch", "culturekit.index.search.flat_torch:make", "torch on a GPU; numpy on a CPU", extra="embed"),
    ],
    point="search",
    contract=Contract((Searcher,), answers={"best": _found_rows}),
)


_WORTH_A_GPU = 2**24  # numbers, rows times dimensions, from which on it pays to copy the vectors to a GPU


def make(spec: Spec, *, vectors: Vectors, order: Order | None) -> Searcher:
    """Make the searcher that is fastest here; FAISS never is, as measured in docs/benchmarks.md."""
    spec.refuse_options()
    name = "numpy"
    if vectors.size >= _WORTH_A_GPU:
        with suppress(ImportError, OSError):  # torch is absent, or its libraries do not load
            name = "torch" if importlib.import_module("torch").cuda.is_available() else "numpy"
    return ENGINES.make(name, vectors=vectors, order=order)


def searcher(vectors: Vectors, *, engine: _SearchEngine = "auto", order: Order | None = None) -> Searcher:
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
    vectors: Vectors, queries: Vectors, *, k: int, order: Order | None = None, slices: Sequence[slice] | None = None
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


class FlatSearcher(ABC):
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

    @abstractmethod
    def search(self, queries: Vectors, k: int, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[slice, Found]]:
        """Give the k best rows of some queries after others, of runs that hold so many at least."""

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


def make_numpy(spec: Spec, *, vectors: Vectors, order: Order | None) -> NumpySearcher:
    """Make the searcher; it takes no options."""
    spec.refuse_options()
    return NumpySearcher(vectors, order=order)
