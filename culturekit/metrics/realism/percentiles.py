"""How certain the consistency of objects is: intervals of low percentiles."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.metrics.realism.score_levels import object_consistency
from culturekit.metrics.statistics.clustering import check_confidence
from culturekit.metrics.statistics.intervals import Interval

__all__ = ["consistency_interval"]

FEWEST = 5
"""Images of an object that must be expected on either side of the percentile."""


def consistency_interval(
    scores: ArrayLike, *, objects: Sequence[str], percentile: float = 10.0, confidence: float = CONFIDENCE
) -> Interval:
    """Give `object_consistency` with an interval that speaks about other images of these objects.

    Images are taken as independent. Each object's percentile is as uncertain as Woodruff (1952) has it: the
    percentiles one standard error of its rank away, to either side, are two standard errors apart. Limits are NaN
    where an object has too few images for that (fewer than 50 for the 10th percentile).

    Args:
        scores: as for `object_consistency`.
        objects: as for `object_consistency`.
        percentile: as for `object_consistency`.
        confidence: how often such intervals are to hold the true value.
    """
    from scipy.special import ndtri

    check_confidence(confidence)
    value = object_consistency(scores, objects=objects, percentile=percentile)
    numbers, names = np.asarray(scores, dtype=np.float64), np.asarray(objects, dtype=np.str_)
    parts = [numbers[names == name] for name in np.unique(names)]
    quantile = float(ndtri((1 + confidence) / 2))
    variance = sum(percentile_variance(part, percentile / 100, quantile) for part in parts) / len(parts) ** 2
    margin = quantile * math.sqrt(variance)
    return Interval(value, value - margin, value + margin, len(numbers), "images")


def percentile_variance(values: NDArray[np.float64], share: float, quantile: float) -> float:
    """Give the variance of a percentile from those a few ranks away."""
    n = len(values)
    if n * min(share, 1 - share) < FEWEST:
        return math.nan
    step = quantile * math.sqrt(share * (1 - share) / n)
    low, high = np.quantile(values, [max(0.0, share - step), min(1.0, share + step)])
    return float(((high - low) / (2 * quantile)) ** 2)
