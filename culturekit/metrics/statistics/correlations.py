"""How well one score follows another, with BCa intervals over clusters."""

import math
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.metrics.arguments import argument_error, check_choice, finite_vector
from culturekit.metrics.statistics.clustering import Clustered, Keys, check_confidence, clustered
from culturekit.metrics.statistics.drawn_correlations import (
    MOST_FOR_KENDALL,
    drawn_kendall,
    drawn_pearson,
    drawn_spearman,
)
from culturekit.metrics.statistics.draws import Drawn
from culturekit.metrics.statistics.intervals import Interval
from culturekit.metrics.statistics.resampling import Statistic, bootstrap

__all__ = ["CORRELATIONS", "FEWEST_CLUSTERS", "Correlation", "as_correlation", "correlate"]

Correlation: TypeAlias = Literal["spearman", "kendall", "pearson"]
CORRELATIONS: tuple[Correlation, ...] = ("spearman", "kendall", "pearson")

FEWEST_CLUSTERS = 10
"""With fewer, no interval of a correlation deserves the name."""


def correlate(
    a: ArrayLike,
    b: ArrayLike,
    *,
    method: Correlation = "spearman",
    clusters: Keys | None = None,
    confidence: float = CONFIDENCE,
    resamples: int = 9999,
    rng: np.random.Generator,
) -> Interval:
    """Correlate two scores of the same items: Spearman's rho, Kendall's tau-b or Pearson's r.

    Args:
        a: float, (n,): one score.
        b: float, (n,): the other, of the same items.
        method: `spearman`, `kendall` or `pearson`.
        clusters: (n,): which items belong together, such as the images of a prompt; they are resampled together.
        confidence: how often such intervals are to hold the true correlation.
        resamples: of the bootstrap.
        rng: where the resamples come from.

    Returns:
        The correlation, NaN where a score is the same for all items, and its BCa limits, NaN with fewer than ten
        clusters.

    Raises:
        UsageError: an argument breaks its rule.
    """
    check_choice("method", method, CORRELATIONS)
    check_confidence(confidence)
    first = finite_vector("a", a)
    pairs = np.column_stack([first, finite_vector("b", b, length=len(first))])
    data = clustered(pairs, clusters)
    statistic = STATISTICS[method]
    if len(data.names) < FEWEST_CLUSTERS:
        return Interval(statistic(data.rows), math.nan, math.nan, len(pairs), "population")
    answer = bootstrap(
        pairs,
        statistic=statistic,
        clusters=clusters,
        confidence=confidence,
        resamples=resamples,
        rng=rng,
        drawn=lambda found: many_draws(found, method),
    )
    return replace(answer, low=max(answer.low, -1.0), high=min(answer.high, 1.0))


def many_draws(data: Clustered, method: Correlation) -> Drawn | None:
    """Make the correlation of many draws at once; None where draw after draw is quicker."""
    if method == "pearson":
        return drawn_pearson(data, pearson)
    if method == "spearman":
        return drawn_spearman(data)
    return drawn_kendall(data) if len(data.names) <= MOST_FOR_KENDALL else None


def as_correlation(name: str) -> Correlation:
    """Read the name of a correlation that a user gave."""
    for method in CORRELATIONS:
        if name == method:
            return method
    raise argument_error("method", " or ".join(map(repr, CORRELATIONS)), name)


def pearson(pairs: NDArray[np.float64]) -> float:
    """Compute Pearson's r of pairs, (n, 2); NaN where one side does not vary."""
    shifts = pairs - pairs.mean(axis=0)
    spreads = np.ptp(pairs, axis=0)
    if len(pairs) < 2 or not (spreads > 0).all():
        return math.nan
    shifts = shifts / spreads
    product = float(shifts[:, 0] @ shifts[:, 1])
    return max(-1.0, min(1.0, product / math.sqrt(float((shifts[:, 0] ** 2).sum() * (shifts[:, 1] ** 2).sum()))))


def spearman(pairs: NDArray[np.float64]) -> float:
    """Compute Spearman's rho of pairs, (n, 2): Pearson's r of mid-ranks."""
    from scipy.stats import rankdata

    return pearson(rankdata(pairs, axis=0))


def kendall(pairs: NDArray[np.float64]) -> float:
    """Compute Kendall's tau-b of pairs, (n, 2); NaN where one side does not vary."""
    from scipy.stats import kendalltau

    if len(pairs) < 2 or not (np.ptp(pairs, axis=0) > 0).all():
        return math.nan
    # The p value is not used; the asymptotic one costs nothing, and divides by zero for two pairs.
    if len(pairs) == 2:
        return float(kendalltau(pairs[:, 0], pairs[:, 1], method="exact").statistic)
    return float(kendalltau(pairs[:, 0], pairs[:, 1], method="asymptotic").statistic)


STATISTICS: dict[Correlation, Statistic] = {"spearman": spearman, "kendall": kendall, "pearson": pearson}
