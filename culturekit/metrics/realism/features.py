"""Feature vectors as they come in: checked, and what can be done with them before any metric."""

import hashlib
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.errors import UsageError, argument_error
from culturekit.metrics.arguments import check_count

Features = NDArray[np.floating]

LARGEST = 1e150  # Squares of larger numbers overflow

ROWS = 4096  # Rows handled at a time where a copy of them is made


def feature_rows(name: str, features: ArrayLike, *, fewest: int = 1) -> Features:
    """Read features, float (n, dim), one row per image; float32 stays float32, everything else becomes float64."""
    try:
        rows = np.asarray(features)
        rows = rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise argument_error(name, "numbers, (n, dim)", features) from error
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise argument_error(name, "one row of numbers per image, (n, dim)", f"shape {rows.shape}")
    if len(rows) < fewest:
        raise argument_error(name, f"at least {fewest} rows", f"{len(rows)}")
    largest = min(LARGEST, float(np.finfo(rows.dtype).max))
    for start, block in blocks(rows):
        usable = (np.abs(block) <= largest).all(axis=1)
        if not usable.all():
            row = start + int(np.argmin(usable))
            worst = rows[row][np.argmin(np.abs(rows[row]) <= largest)]
            raise argument_error(f"{name}[{row}]", "finite, and at most 1e150 in size", float(worst))
    return rows


def feature_sets(
    name: str, features: ArrayLike, other: str, others: ArrayLike, *, fewest: int = 1
) -> tuple[Features, Features]:
    """Read two sets of features, and refuse those that are not of one space."""
    rows, others = feature_rows(name, features, fewest=fewest), feature_rows(other, others, fewest=fewest)
    if rows.shape[1] != others.shape[1]:
        raise UsageError(
            f"{name} and {other} must come from one extractor",
            expected=f"vectors of {rows.shape[1]} numbers, like {name}",
            found=f"{others.shape[1]} in {other}",
        )
    return rows, others


def blocks(rows: Features, size: int = ROWS) -> Iterator[tuple[int, Features]]:
    """Give runs of rows with the number of the first."""
    for start in range(0, len(rows), size):
        yield start, rows[start : start + size]


def features_digest(rows: Features) -> str:
    """Hash features by content: values, their type, and the shape."""
    digest = hashlib.sha256(f"{rows.dtype.str} {rows.shape}".encode())
    for _, block in blocks(rows):
        digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()


def unduplicated(features: ArrayLike) -> NDArray[np.bool_]:
    """Mark the rows that no other row equals, bool (n,): of rows that are equal all copies are unmarked.

    Equal pictures have one and the same feature vector, and a neighbourhood of radius zero in which nothing lies.
    """
    rows = feature_rows("features", features, fewest=0)
    # Adding zero makes -0.0 and 0.0, which are equal, have the same bytes.
    plain = np.ascontiguousarray(rows) + np.zeros((), rows.dtype)
    keys = plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1]))).ravel()
    _, code, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.asarray(counts[code] == 1)


# Which distances are below a limit, exactly, at the speed of float32 matrix products.
#
# |x|² + |y|² - 2xy in float32 is fast and wrong by rounding: it must not decide a close call. So it comes with a bound
# on its error, and every pair that the bound leaves open is computed again, as a sum of squared float64 differences.

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

BLOCK = 2048  # Rows on each side of a block of pairs: 16 MB of float32

UNIT = float(np.finfo(np.float32).eps) / 2
PAIR_BYTES = 16_000_000

SMALLEST = 1e-140  # Of points closer than this the squares underflow, and the exact way alone decides


@dataclass(frozen=True, slots=True)
class Cloud:
    """A set of points, as given and ready for float32 products."""

    points: Features  # float, (n, dim): as given
    # float32, (n, dim + 4): moved to the common centre, scaled by a power of two so that no norm exceeds 1, then |x|²
    # as two float32 (what the first cannot hold is in the second), 1 and 1
    scaled: NDArray[np.float32]
    norms: Floats  # float64, (n,): |x| of the scaled points
    scale: float  # what the points were multiplied by; squared distances grow by its square


def clouds(*sets: Features) -> tuple[Cloud, ...]:
    """Prepare sets of points, all (n, dim) of one width: common centre and scale make rounding matter least."""
    centre = sum(block.sum(axis=0, dtype=np.float64) for points in sets for _, block in blocks(points))
    centre = np.asarray(centre / sum(map(len, sets)))
    largest = max(float(np.abs(block - centre).max()) for points in sets for _, block in blocks(points))
    # A power of two: scaling by it rounds nothing.
    reach = largest * np.sqrt(len(centre))
    scale = float(2.0 ** -np.ceil(np.log2(reach))) if reach > SMALLEST else 1.0
    return tuple(prepared(points, centre, scale) for points in sets)


def prepared(points: Features, centre: Floats, scale: float) -> Cloud:
    """Move, scale and round one set of points."""
    n, dim = points.shape
    scaled, norms = np.ones((n, dim + 4), np.float32), np.empty(n)
    for start, block in blocks(points):
        rows = slice(start, start + len(block))
        moved = scaled[rows, :dim] = (block - centre) * scale
        # Of the rounded coordinates: the expansion is of these.
        squares = np.square(scaled[rows, :dim], dtype=np.float64).sum(axis=1)
        scaled[rows, dim] = squares
        scaled[rows, dim + 1] = squares - scaled[rows, dim]
        norms[rows] = np.maximum(np.sqrt(squares), np.sqrt(np.square(moved).sum(axis=1)))
    return Cloud(points, scaled, norms, scale)


def rough_squares(
    left: Cloud, rows: slice, right: Cloud, columns: slice, out: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Give |x - y|² of the scaled points of a block, float32 (rows, columns), off by at most `block_bound`."""
    near, other = left.scaled[rows], right.scaled[columns]
    turned = np.empty_like(near)
    dim = near.shape[1] - 4
    np.multiply(near[:, :dim], np.float32(-2), out=turned[:, :dim])
    turned[:, dim : dim + 2] = 1
    turned[:, dim + 2 :] = near[:, dim : dim + 2]
    squares = out[: len(near) * len(other)].reshape(len(near), len(other))
    np.matmul(turned, other.T, out=squares)
    return squares


def block_bound(dim: int, left: Floats, right: Floats | float) -> Floats:
    """Bound the error of `rough_squares`, in squares of scaled points; norms broadcast.

    With u = 2⁻²⁴, m = dim + 4 and s = |x| + |y|: a float32 sum of m products is off by at most
    mu/(1 - mu) times the sum of their sizes, in whatever order it is summed, and that sum is at most
    2|x||y| + |x|² + |y|² = s². Two float32 hold |x|² but for u²|x|². Rounding the moved coordinates shifts each point
    by at most u times its norm, and the squared distance by less than (2u + u²)s². Numbers that underflow are each
    off by less than 2⁻¹²⁶. The factor 1.01 covers float64's own rounding.
    """
    terms = dim + 4
    if terms * UNIT >= 0.5:
        return np.full(np.broadcast(left, right).shape, np.inf)
    share = terms * UNIT / (1 - terms * UNIT) + 3 * UNIT
    return np.asarray(1.01 * (share * np.square(left + right) + 4 * terms * 2.0**-126))


def exact_squares(left: Features, rows: Numbers, right: Features, columns: Numbers) -> Floats:
    """Give |x - y|² of pairs of points as given, float64 (n,); the same for (x, y) and (y, x), and for equal pairs."""
    answer = np.empty(len(rows))
    step = max(1, PAIR_BYTES // (8 * left.shape[1]))
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        differences = np.subtract(left[rows[some]], right[columns[some]], dtype=np.float64)
        answer[some] = np.square(differences, out=differences).sum(axis=1)
    return answer


# What the numbers of an extractor may be called, what they may not be made from, and whose weights they are.

POOL3 = "inception features"  # How the encoder is called that gives pool3 of InceptionV3 as it is

# Other vectors that the same network gives
NOT_FEATURES: Mapping[str, str] = {
    "inception": "pool3 of unit length: FID and KID are defined on pool3 as it is",
    "inception probabilities": "class probabilities, which are no features",
}

PORTED = "TensorFlow"  # How the revision of the weights begins that published FIDs were measured with

SHORT: Mapping[str, str] = {"frechet_distance": "FID", "kernel_distance": "KID"}
LONG: Mapping[str, str] = {"frechet_distance": "Fréchet distance", "kernel_distance": "Kernel distance"}

LICENCES: Mapping[str, str] = {
    "embedded": "no weights",
    "inception/TensorFlow": "published weights (TensorFlow's InceptionV3 of 2015-12-05): Apache-2.0",
    "inception/torchvision": "published weights (torchvision): BSD-3-Clause, trained on ImageNet",
}

UNKNOWN_LICENCE = "that of the weights, which say nothing of it"


def called(metric: str, encoder: Mapping[str, Any]) -> str:
    """Name a distance of distributions: FID and KID are those of pool3, anything else says on what it is."""
    name = str(encoder.get("name", "unknown"))
    if name != POOL3:
        return f"{LONG[metric]} on {name}"
    ported = str(encoder.get("revision", "")).startswith(PORTED)
    return SHORT[metric] if ported else f"{SHORT[metric]} with torchvision's weights, not the published one"


def check_extractor(encoder: Mapping[str, Any], *, where: str) -> None:
    """Refuse what InceptionV3 gives besides its features."""
    problem = NOT_FEATURES.get(str(encoder.get("name", "")))
    if problem is not None:
        raise UsageError(
            f"these vectors are {problem}", where=where, expected=f"vectors of {POOL3}", found=str(encoder["name"]),
            hint="Embed the pictures with inception:FILE?give=features.",
        )  # fmt: skip


def licence_of(encoder: Mapping[str, Any]) -> str:
    """Say under which licence the weights of an extractor are, where that is known."""
    name = str(encoder.get("name", "unknown"))
    if name.startswith("inception"):
        ported = str(encoder.get("revision", "")).startswith(PORTED)
        return LICENCES[f"inception/{PORTED if ported else 'torchvision'}"]
    return LICENCES.get(name, UNKNOWN_LICENCE)


# How far each point is from its k-th nearest neighbour, exactly.

# SHA-256 of features, and k -> their squared radii; a plain dict will do
RadiiCache = MutableMapping[tuple[str, int], Floats]

PAIRS = 500_000  # Close pairs looked at together


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
    best: Floats, limits: Floats, cloud: Cloud, rough: NDArray[np.float32], part: slice, other: slice, *, turned: bool
) -> None:
    """Let a block of pairs improve the nearest neighbours of its rows, or, `turned`, of its columns."""
    rows_part, seen = (other, part) if turned else (part, other)
    dim = cloud.points.shape[1]
    reach = limits[rows_part] + block_bound(dim, cloud.norms[rows_part], cloud.norms[seen].max())
    highest = just_above(np.where(limits[rows_part] > 0, reach, -np.inf))
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
    group, kept = np.repeat(np.arange(len(starts)), sizes), rank < k
    table = np.full((len(starts), k), np.inf)
    table[group[kept], rank[kept]] = squares[kept]
    names = points[starts]
    best[names] = np.partition(np.concatenate([best[names], table], axis=1), k - 1, axis=1)[:, :k]


def just_above(limits: Floats) -> NDArray[np.float32]:
    """Round up to float32: a float64 limit would turn the whole comparison into float64."""
    return np.nextafter(limits.astype(np.float32), np.float32(np.inf))
