"""Means and shares over images that come in prompts, every image weighing the same, with their intervals."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.metrics.arguments import argument_error, check_choice, check_confidence, finite_vector
from culturekit.metrics.statistics.clustering import Clustered, Keys, clustered
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Interval, Target

__all__ = ["Scatter", "mean_interval", "scatter", "share_interval", "t_interval"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scatter:
    """How uncertain a number is.

    Attributes:
        variance: NaN where the images do not say.
        freedom: degrees of freedom behind it.
        units: how many clusters, or images, vary independently.
    """

    variance: float
    freedom: float
    units: int


def mean_interval(
    values: ArrayLike, *, clusters: Keys | None = None, target: Target = "population", confidence: float = CONFIDENCE
) -> Interval:
    """Give the mean over images, each weighing the same, with a t interval.

    `population` takes the clusters, such as prompts, as a sample: their totals vary, and with few of them there are
    no limits. `these` holds them fixed: images vary within each; a cluster of one image does not say how much.

    Args:
        values: float, (n,): one per image.
        clusters: (n,): what each belongs to; without, each image is its own and the target is `population`.
        target: `population` or `these`.
        confidence: how often such intervals are to hold the true mean.

    Raises:
        UsageError: an argument breaks its rule.
    """
    data, target = in_clusters(values, clusters, target, confidence)
    return t_interval(middle(data.rows), scatter(data, target), len(data.rows), target, confidence)


def share_interval(
    yes: ArrayLike, *, clusters: Keys | None = None, target: Target = "population", confidence: float = CONFIDENCE
) -> Interval:
    """Give a share of images with Wilson's interval at their effective number (as `clustered_share`, prompts or not).

    That is the number of independent images whose share would scatter as this one does. Where all images agree,
    nothing scatters, and every cluster (with `these`: every image) counts as one image. The quantile is t's.

    Args:
        yes: (n,): 0 and 1 for each image or answer.
        clusters: as for `mean_interval`.
        target: as for `mean_interval`.
        confidence: how often such intervals are to hold the true share.

    Raises:
        UsageError: an argument breaks its rule.
    """
    data, chosen = in_clusters(yes, clusters, target, confidence)
    if not np.isin(data.rows, (0, 1)).all():
        raise argument_error("yes", "True and False, or 1 and 0", data.rows[~np.isin(data.rows, (0, 1))][0])
    share, found = middle(data.rows), scatter(data, chosen)
    low, high = wilson(share, found, len(data.rows), confidence)
    return Interval(share, low, high, len(data.rows), chosen)


def in_clusters(
    values: ArrayLike, clusters: Keys | None, target: Target, confidence: float
) -> tuple[Clustered, Target]:
    """Read the arguments; images without clusters are a sample of images."""
    check_confidence(confidence)
    check_choice("target", target, ("these", "population"))
    data = clustered(finite_vector("values", values), clusters)
    return data, "population" if clusters is None else target


def middle(values: Floats) -> float:
    """Average, exactly when all are equal."""
    return float(values[0] + (values - values[0]).mean())


def scatter(data: Clustered, target: Target) -> Scatter:
    """Give the variance of the mean over images."""
    n, k = len(data.rows), len(data.names)
    residuals = data.rows - middle(data.rows)
    if target == "population":
        if k < FEWEST_PROMPTS:
            return Scatter(math.nan, 0, k)
        totals = np.add.reduceat(residuals, data.starts)
        return Scatter(float(k / (k - 1) * np.square(totals).sum()) / n**2, k - 1, k)
    if data.sizes.min() < 2:
        return Scatter(math.nan, 0, n)
    within = data.rows - np.repeat(data.means(), data.sizes)
    parts = np.add.reduceat(np.square(within), data.starts) * data.sizes / (data.sizes - 1) / n**2
    variance = float(parts.sum())
    # Welch and Satterthwaite.
    freedom = variance**2 / float((parts**2 / (data.sizes - 1)).sum()) if variance > 0 else float(n - k)
    return Scatter(variance, freedom, n)


def t_interval(value: float, found: Scatter, n: int, target: str, confidence: float) -> Interval:
    """Put t limits around a number."""
    margin = quantile(found, confidence) * math.sqrt(found.variance) if found.variance > 0 else found.variance
    return Interval(value, value - margin, value + margin, n, target)


def quantile(found: Scatter, confidence: float) -> float:
    """Give t's quantile."""
    from scipy.special import stdtrit

    return float(stdtrit(found.freedom, (1 + confidence) / 2))


def wilson(share: float, found: Scatter, n: int, confidence: float) -> tuple[float, float]:
    """Give Wilson's limits at the effective number of images."""
    if math.isnan(found.variance):
        return math.nan, math.nan
    effective = share * (1 - share) / found.variance if found.variance > 0 and 0 < share < 1 else float(found.units)
    squared = quantile(found, confidence) ** 2
    effective = min(effective, float(n))
    centre = (share + squared / (2 * effective)) / (1 + squared / effective)
    half = math.sqrt(squared * (share * (1 - share) / effective + squared / (4 * effective**2)))
    half /= 1 + squared / effective
    return max(0.0, centre - half), min(1.0, centre + half)
