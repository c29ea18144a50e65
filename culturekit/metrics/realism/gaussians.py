"""The Fréchet distance of two sets of features, taken as Gaussian: FID on Inception features."""

import numpy as np
from numpy.typing import ArrayLike

from culturekit.metrics.realism.distances import Floats
from culturekit.metrics.realism.features import Features, blocks, check_same_width, feature_rows

__all__ = ["frechet_distance"]


def frechet_distance(a: ArrayLike, b: ArrayLike) -> float:
    """Give |μa - μb|² + tr(Sa) + tr(Sb) - 2 tr((Sa Sb)^½), covariances with ddof = 1 (Heusel et al. 2017).

    The last trace is the sum of the square roots of the eigenvalues of Sa Sb. With Sa = Ra'Ra and Sb = Rb'Rb these
    roots are the singular values of Ra Rb'. They come from the factors, never from a covariance, whose rounding
    a square root would magnify: so few images (two are enough), or features that depend on each other, are no
    special case. The estimate is biased upwards by an amount that shrinks with n: compare equal n only.

    Args:
        a: float, (n, dim), n at least 2.
        b: float, (m, dim), m at least 2.

    Returns:
        The distance, a square, at least 0.

    Raises:
        UsageError: an argument breaks its rule.
    """
    first, second = feature_rows("a", a, fewest=2), feature_rows("b", b, fewest=2)
    check_same_width(("a", first), ("b", second))
    (mean, factor), (other_mean, other_factor) = gaussian(first), gaussian(second)
    roots = np.linalg.svd(factor @ other_factor.T, compute_uv=False)
    spread = np.square(factor).sum() + np.square(other_factor).sum()
    return max(0.0, float(np.square(mean - other_mean).sum() + spread - 2 * roots.sum()))


def gaussian(rows: Features) -> tuple[Floats, Floats]:
    """Give the mean, (dim,), and R with R'R the covariance, (at most dim, dim), in bounded memory."""
    mean = np.asarray(sum(block.sum(axis=0, dtype=np.float64) for _, block in blocks(rows)) / len(rows))
    factor = np.empty((0, rows.shape[1]))
    for _, block in blocks(rows):
        factor = np.asarray(np.linalg.qr(np.concatenate([factor, block - mean]), mode="r"))
    return mean, factor / np.sqrt(len(rows) - 1)
