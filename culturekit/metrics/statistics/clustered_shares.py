"""Shares of answers that are not independent: several about one image, many by one annotator."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.metrics.arguments import argument_error, check_confidence, finite_vector
from culturekit.metrics.statistics.clustering import Keys, cluster_codes
from culturekit.metrics.statistics.intervals import Interval

__all__ = ["clustered_share"]


def clustered_share(values: ArrayLike, clusters: Mapping[str, Keys], *, confidence: float = CONFIDENCE) -> Interval:
    """Average numbers from 0 to 1, with a Wilson interval for as many independent answers as they are worth.

    The variance is robust to answers that go together within a cluster of any kind named (Cameron, Gelbach and Miller
    2011: the sum over kinds, less that of their crossing), the answers are counted as p(1 - p) over that variance,
    and at most as many as there are, and Wilson's limits take the t quantile of the kind with the fewest clusters. A
    kind with one cluster is held fixed: nothing says how another would answer. Where all answers are equal they are
    counted as the kind with the most clusters has of them, and that is likely too many when annotators are few.

    Args:
        values: float, (n,): 1 and 0, or shares.
        clusters: kind -> (n,): such as the image and the annotator of each answer; one or two kinds.
        confidence: how often such intervals are to hold the share of all images and annotators like these.

    Raises:
        UsageError: an argument breaks its rule.
    """
    from scipy.special import stdtrit

    check_confidence(confidence)
    numbers = finite_vector("values", values)
    if numbers.min() < 0 or numbers.max() > 1:
        raise argument_error("values", "from 0 to 1", [float(numbers.min()), float(numbers.max())])
    if not 1 <= len(clusters) <= 2:
        raise argument_error("clusters", "of one kind or two", sorted(clusters))
    codes = [cluster_codes(f"clusters[{kind!r}]", keys, length=len(numbers)) for kind, keys in clusters.items()]
    usable = [code for code in codes if code.max() > 0]
    share = float(np.sort(numbers).mean())
    if not usable:
        return Interval(share, np.nan, np.nan, len(numbers), "population")
    sizes = [int(code.max()) + 1 for code in usable]
    worth = effective_number(numbers - share, usable, share)
    quantile = float(stdtrit(min(sizes) - 1, (1 + confidence) / 2))
    low, high = wilson(share, worth, quantile)
    return Interval(share, low, high, len(numbers), "population")


def effective_number(deviations: NDArray[np.float64], codes: Sequence[NDArray[np.int64]], share: float) -> float:
    """Count how many independent answers would scatter as much as these."""
    variances = [variance_of_mean(deviations, code) for code in codes]
    if len(codes) == 2:
        crossed = np.unique(codes[0] * (codes[1].max() + 1) + codes[1], return_inverse=True)[1]
        # The crossing is taken away once; where that leaves less than either kind alone, the larger kind stands.
        variances.append(max(*variances, sum(variances) - variance_of_mean(deviations, crossed)))
    most = max(int(code.max()) + 1 for code in codes)
    if variances[-1] <= 0:
        return float(most)
    return min(float(len(deviations)), share * (1 - share) / variances[-1])


def variance_of_mean(deviations: NDArray[np.float64], code: NDArray[np.int64]) -> float:
    """Estimate the variance of a mean from the sums of clusters."""
    sums = np.bincount(code, weights=deviations)
    number = len(sums)
    return float((sums**2).sum()) / len(deviations) ** 2 * number / (number - 1)


def wilson(share: float, number: float, quantile: float) -> tuple[float, float]:
    """Give Wilson's limits of a share of so many answers."""
    square = quantile**2 / number
    middle = (share + square / 2) / (1 + square)
    half = quantile / (1 + square) * np.sqrt(share * (1 - share) / number + square / (4 * number))
    return min(share, max(0.0, float(middle - half))), max(share, min(1.0, float(middle + half)))
