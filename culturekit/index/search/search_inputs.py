"""What may be searched, and for what: unit vectors of one dimension, an order of rows, slices of rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.index.encoder import Vectors
from culturekit.index.search.search_found import Order, Rows

__all__ = ["LARGEST_NORM", "Block", "all_rows", "blocks_of", "checked_order", "checked_queries", "checked_vectors"]

LARGEST_NORM = 1.001
"""How long a unit vector may be; half precision leaves no more than that."""

ROWS_CHECKED_AT_ONCE = 65_536
SHORTEST_VIEW = 64
"""Runs of fewer rows than this are copied together into a block; longer ones are read where they lie."""


@dataclass(frozen=True, slots=True)
class Block:
    """Vectors that are scanned at once, and the number of each, or of the first where they follow on."""

    vectors: Vectors
    numbers: Rows | int


def checked_vectors(vectors: Vectors, what: str = "vectors") -> Vectors:
    """Make sure that vectors are float32 (n, dim), finite, of unit norm; a memory map is seen as a plain array."""
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or vectors.dtype != np.float32 or not vectors.shape[1]:
        raise UsageError(
            f"the {what} cannot be searched", expected="float32 (n, dim)", found=f"{vectors.dtype} {vectors.shape}"
        )
    for start in range(0, len(vectors), ROWS_CHECKED_AT_ONCE):
        some = vectors[start : start + ROWS_CHECKED_AT_ONCE]
        norms = np.sqrt(np.einsum("ij,ij->i", some, some))
        wrong = np.flatnonzero(~((norms <= LARGEST_NORM) & (norms >= 2 - LARGEST_NORM)))
        if len(wrong):
            finite = bool(np.isfinite(some[wrong[0]]).all())
            raise UsageError(
                f"the {what} are not all unit vectors",
                where=f"row {start + wrong[0]}",
                expected="a norm of 1",
                found=f"{norms[wrong[0]]:.6g}" if finite else "a number that is not finite",
            )
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
    for start, stop in sorted(bounds(part, count) for part in slices):
        if runs and start <= runs[-1][1]:
            runs[-1] = runs[-1][0], max(stop, runs[-1][1])
        elif start < stop:
            runs.append((start, stop))
    return runs


def bounds(part: slice, count: int) -> tuple[int, int]:
    """Give the rows of one slice, which lie within the vectors."""
    start = 0 if part.start is None else int(part.start)
    stop = count if part.stop is None else int(part.stop)
    if not 0 <= start <= stop <= count or part.step not in {None, 1}:
        raise UsageError("a slice lies outside the vectors", expected=f"rows of 0 to {count}", found=str(part))
    return start, stop


def blocks_of(vectors: Vectors, runs: Sequence[tuple[int, int]], size: int) -> Iterator[Block]:
    """Cut runs of rows into blocks; long runs are read where they lie, short ones are gathered."""
    short: list[Rows] = []
    waiting = 0
    for start, stop in runs:
        if stop - start >= SHORTEST_VIEW:
            for first in range(start, stop, size):
                yield Block(vectors[first : min(first + size, stop)], first)
            continue
        short.append(np.arange(start, stop))
        waiting += stop - start
        if waiting >= size - SHORTEST_VIEW:
            yield gathered(vectors, short)
            short, waiting = [], 0
    if short:
        yield gathered(vectors, short)


def gathered(vectors: Vectors, runs: Sequence[Rows]) -> Block:
    """Copy rows together."""
    rows = np.concatenate(runs)
    return Block(np.ascontiguousarray(vectors[rows]), rows)
