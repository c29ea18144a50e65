"""How alike images are to an encoder: what stands beside diversity to show what it misses."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.arguments import argument_error

__all__ = ["mean_cosine"]

BLOCK = 65_536
"""Vectors worked on at a time."""


def mean_cosine(vectors: ArrayLike) -> float:
    """Average the cosines of all pairs of vectors, those with themselves included: (1/N²) Σ over i and j.

    This is the squared length of the mean of the unit vectors, so no pair is looked at. Slides on CUBE call it
    coverage; it has nothing to do with the coverage of `prdc`, and low values mean varied images.

    Args:
        vectors: float, (n, dim): one per image, not all zero; rows are normalised here, in float64.

    Returns:
        The mean, between 0 (they cancel out) and 1 (all alike).

    Raises:
        UsageError: there are no such vectors.
    """
    try:
        table = np.asarray(vectors)
        total = np.zeros(table.shape[1] if table.ndim == 2 else 0)
        if table.ndim != 2 or table.size == 0:
            raise argument_error("vectors", "a matrix with at least one cell", f"shape {table.shape}")
        for start in range(0, len(table), BLOCK):
            total += unit(table[start : start + BLOCK], start).sum(axis=0)
    except (TypeError, ValueError) as error:
        raise argument_error("vectors", "a matrix of numbers", vectors) from error
    mean = total / len(table)
    return min(float(mean @ mean), 1.0)


def unit(block: NDArray[np.generic], start: int) -> NDArray[np.float64]:
    """Normalise some rows, of which the first has the number `start`."""
    rows = np.asarray(block, np.float64)
    # Lengths of tiny or huge vectors would leave the range of numbers when squared.
    largest = np.abs(rows).max(axis=1)
    wrong = ~(np.isfinite(largest) & (largest > 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise argument_error(f"vectors[{start + row}]", "finite, and a vector other than zero", rows[row])
    rows = rows / largest[:, None]
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])
