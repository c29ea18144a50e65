"""How far each point is from its k-th nearest neighbour, exactly."""

from collections.abc import Iterator, MutableMapping
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.arguments import argument_error, check_count
from culturekit.metrics.realism.distances import (
    BLOCK,
    Cloud,
    Floats,
    Numbers,
    block_bound,
    clouds,
    exact_squares,
    rough_squares,
)
from culturekit.metrics.realism.features import feature_rows, features_digest

__all__ = ["RadiiCache", "check_neighbours", "just_above", "squared_radii"]

RadiiCache = MutableMapping[tuple[str, int], Floats]
"""SHA-256 of features, and k -> their squared radii; a plain dict will do."""

PAIRS = 500_000
"""Close pairs looked at together."""


def squared_radii(features: ArrayLike, *, k: int = 5, cache: RadiiCache | None = None, block: int = BLOCK) -> Floats:
    """Give the squared distance of each point to its k-th nearest neighbour, itself not counted.

    Squares, because a root would round: two distances that tie must compare as equal. A copy of a point is a
    neighbour at distance zero. Distances are sums of squared float64 differences; which pairs need one is found by
    float32 products with a bound on their error, so that the answer never depends on blocks or threads.

    Args:
        features: float, (n, dim), n above k.
        k: which neighbour.
        cache: where answers are kept by the hash of the features and k, and looked for first.
        block: points on each side of a block; memory grows with its square.

    Returns:
        float64, (n,).

    Raises:
        UsageError: an argument breaks its rule.
    """
    rows = feature_rows("features", features)
    check_neighbours("features", len(rows), k)
    key = (features_digest(rows), int(k)) if cache is not None else ("", 0)
    if cache is not None and key in cache:
        return cache[key]
    (cloud,) = clouds(rows)
    best = nearest_squares(cloud, int(k), block=max(block, 4 * k))
    answer = np.asarray(best.max(axis=1))
    if cache is not None:
        cache[key] = answer
    return answer


def check_neighbours(name: str, n: int, k: int) -> None:
    """Refuse a k that is no neighbour's number among n points."""
    check_count("k", k)
    if n <= k:
        raise argument_error(name, f"more than k = {k} rows, since a point is no neighbour of its own", f"{n}")


def nearest_squares(cloud: Cloud, k: int, *, block: int) -> Floats:
    """Give the squared distances of each point to its k nearest neighbours, float64 (n, k), in no order."""
    n, dim = cloud.points.shape
    best = np.full((n, k), np.inf)
    limits = np.full(n, np.inf)
    edges = np.linspace(0, n, -(-n // block) + 1).astype(int).tolist()
    parts = [slice(low, high) for low, high in pairwise(edges)]
    out = np.empty(max(part.stop - part.start for part in parts) ** 2, np.float32)
    for part in parts:
        rough = rough_squares(cloud, part, cloud, part, out)
        np.fill_diagonal(rough, np.inf)
        if len(rough) > k:
            # Some k points of the block are nearer than this.
            bound = block_bound(dim, cloud.norms[part], cloud.norms[part].max())
            limits[part] = np.partition(rough, k - 1, axis=1)[:, k - 1] + 2 * bound
        improve(best, limits, cloud, rough, part, part, turned=False)
    for number, part in enumerate(parts):
        for other in parts[number + 1 :]:
            rough = rough_squares(cloud, part, cloud, other, out)
            improve(best, limits, cloud, rough, part, other, turned=False)
            improve(best, limits, cloud, rough, part, other, turned=True)
    return best


def improve(
    best: Floats,
    limits: Floats,
    cloud: Cloud,
    rough: NDArray[np.float32],
    part: slice,
    other: slice,
    *,
    turned: bool,
) -> None:
    """Let a block of pairs improve the nearest neighbours of its rows, or, `turned`, of its columns."""
    own, seen = (other, part) if turned else (part, other)
    dim = cloud.points.shape[1]
    reach = limits[own] + block_bound(dim, cloud.norms[own], cloud.norms[seen].max())
    highest = just_above(np.where(limits[own] > 0, reach, -np.inf))
    hits = np.flatnonzero(rough <= (highest if turned else highest[:, None]))
    squares = rough.ravel()[hits]
    rows, columns = (side.astype(np.int64) for side in np.divmod(hits, rough.shape[1]))
    points, neighbours = (
        (columns + other.start, rows + part.start) if turned else (rows + part.start, columns + other.start)
    )
    lows = np.maximum(squares - block_bound(dim, cloud.norms[points], cloud.norms[neighbours]), 0)
    close = np.flatnonzero(lows < limits[points])
    points, neighbours, lows = points[close], neighbours[close], lows[close]
    for some in in_turns(points, k=best.shape[1]):
        # Those before may have shown that these are too far: with many copies of a point, nearly all.
        closer = some[lows[some] < limits[points[some]]]
        if len(closer):
            exact = exact_squares(cloud.points, points[closer], cloud.points, neighbours[closer])
            keep_nearest(best, points[closer], exact)
            touched = points[closer]
            known = best[touched].max(axis=1) * cloud.scale**2
            limits[touched] = np.minimum(limits[touched], known)


def in_turns(points: Numbers, *, k: int) -> Iterator[Numbers]:
    """Number hits in runs: first a few of every point, then the others."""
    order = np.argsort(points, kind="stable")
    starts = np.flatnonzero(np.diff(points[order], prepend=-1))
    rank = np.arange(len(points)) - np.repeat(starts, np.diff(starts, append=len(points)))
    for turn in (order[rank < 2 * k], order[rank >= 2 * k]):
        for start in range(0, len(turn), PAIRS):
            yield turn[start : start + PAIRS]


def keep_nearest(best: Floats, points: Numbers, squares: Floats) -> None:
    """Merge new squared distances of points into their k smallest."""
    k = best.shape[1]
    order = np.lexsort((squares, points))
    points, squares = points[order], squares[order]
    starts = np.flatnonzero(np.diff(points, prepend=-1))
    sizes = np.diff(starts, append=len(points))
    rank = np.arange(len(points)) - np.repeat(starts, sizes)
    place, kept = np.repeat(np.arange(len(starts)), sizes), rank < k
    table = np.full((len(starts), k), np.inf)
    table[place[kept], rank[kept]] = squares[kept]
    names = points[starts]
    best[names] = np.partition(np.concatenate([best[names], table], axis=1), k - 1, axis=1)[:, :k]


def just_above(limits: Floats) -> NDArray[np.float32]:
    """Round up to float32: a float64 limit would turn the whole comparison into float64."""
    return np.nextafter(limits.astype(np.float32), np.float32(np.inf))
