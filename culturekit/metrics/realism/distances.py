"""Which distances are below a limit, exactly, at the speed of float32 matrix products.

|x|² + |y|² - 2xy in float32 is fast and wrong by rounding: it must not decide a close call. So it comes with a bound
on its error, and every pair that the bound leaves open is computed again, as a sum of squared float64 differences.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.realism.features import Features, blocks

__all__ = ["BLOCK", "Cloud", "Floats", "Numbers", "block_bound", "clouds", "exact_squares", "rough_squares"]

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

BLOCK = 2048
"""Rows on each side of a block of pairs: 16 MB of float32."""

UNIT = float(np.finfo(np.float32).eps) / 2
PAIR_BYTES = 16_000_000

SMALLEST = 1e-140
"""Of points closer than this the squares underflow, and the exact way alone decides."""


@dataclass(frozen=True, slots=True)
class Cloud:
    """A set of points, as given and ready for float32 products.

    Attributes:
        points: float, (n, dim): as given.
        scaled: float32, (n, dim + 4): moved to the common centre, scaled by a power of two so that no norm
            exceeds 1, then |x|² as two float32 (what the first cannot hold is in the second), 1 and 1.
        norms: float64, (n,): |x| of the scaled points.
        scale: what the points were multiplied by; squared distances grow by its square.
    """

    points: Features
    scaled: NDArray[np.float32]
    norms: Floats
    scale: float


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
    own, other = left.scaled[rows], right.scaled[columns]
    turned = np.empty_like(own)
    dim = own.shape[1] - 4
    np.multiply(own[:, :dim], np.float32(-2), out=turned[:, :dim])
    turned[:, dim : dim + 2] = 1
    turned[:, dim + 2 :] = own[:, dim : dim + 2]
    place = out[: len(own) * len(other)].reshape(len(own), len(other))
    np.matmul(turned, other.T, out=place)
    return place


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
