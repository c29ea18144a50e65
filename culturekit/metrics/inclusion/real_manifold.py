"""The manifold of real images: a ball around each, as wide as the way to its k-th neighbour."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.arguments import argument_error

__all__ = ["inside_manifold", "neighbour_radii"]

Vectors: TypeAlias = NDArray[np.float64]
"""float64, (n, dim)."""

BLOCK = 256
"""Rows whose distances are held at a time; the answer does not depend on it."""

EPSILON = float(np.finfo(np.float64).eps)


def neighbour_radii(real: Vectors, *, k: int) -> Vectors:
    """Give the squared distance of each vector to its k-th neighbour, itself not counted, float64 (n,)."""
    if k != int(k) or not 1 <= k < len(real):
        raise argument_error("k", f"a whole number from 1 to {len(real) - 1}, one less than the real images", k)
    lengths = np.square(real).sum(axis=1)
    radii = np.empty(len(real))
    for start in range(0, len(real), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(real)))
        near = expanded(real[rows], real, lengths[rows], lengths)
        near[rows - start, rows] = np.inf
        bound = np.partition(near, k - 1, axis=1)[:, k - 1] + 2 * slack(lengths[rows], lengths, real.shape[1])
        for row, candidates in zip(rows, near <= bound[:, None], strict=True):
            exact = np.square(real[candidates] - real[row]).sum(axis=1)
            radii[row] = np.partition(exact, k - 1)[k - 1]
    return radii


def inside_manifold(fake: Vectors, real: Vectors, radii: Vectors) -> NDArray[np.bool_]:
    """Tell which vectors lie strictly within the ball of any real one, bool (m,).

    Distances come from expanded squares; those that rounding could put on the wrong side are taken anew as differences.

    Args:
        fake: (m, dim).
        real: (n, dim).
        radii: (n,): the squared radii that `neighbour_radii` gives.
    """
    lengths = np.square(real).sum(axis=1)
    own = np.square(fake).sum(axis=1)
    inside = np.zeros(len(fake), bool)
    for start in range(0, len(fake), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(fake)))
        margin = radii - expanded(fake[rows], real, own[rows], lengths)
        doubt = slack(own[rows], lengths, real.shape[1])[:, None]
        inside[rows] = (margin > doubt).any(axis=1)
        for row, close in zip(rows, np.abs(margin) <= doubt, strict=True):
            if not inside[row] and close.any():
                inside[row] = bool((np.square(real[close] - fake[row]).sum(axis=1) < radii[close]).any())
    return inside


def expanded(a: Vectors, b: Vectors, of_a: Vectors, of_b: Vectors) -> Vectors:
    """Give squared distances as |x|² + |y|² - 2xy, (len(a), len(b)): fast, and a little off."""
    return np.asarray(of_a[:, None] + of_b - 2 * (a @ b.T))


def slack(of_a: Vectors, of_b: Vectors, dim: int) -> Vectors:
    """Bound how far an expanded square may be off, (len(of_a),): each of its `dim` products may be rounded."""
    return np.asarray((dim + 8) * EPSILON * (of_a + of_b.max()))
