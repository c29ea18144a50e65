"""The bootstrap over clusters, on scipy: BCa limits widened for small samples."""

import math
import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CHEAP_RESAMPLES, CONFIDENCE
from culturekit.metrics.arguments import argument_error, check_choice, check_confidence, check_count
from culturekit.metrics.statistics.clustering import Clustered, Keys, clustered, finite_rows
from culturekit.metrics.statistics.draws import Drawn
from culturekit.metrics.statistics.intervals import Interval

__all__ = ["Method", "Statistic", "bootstrap"]

Statistic: TypeAlias = Callable[[NDArray[np.float64]], float]
Method: TypeAlias = Literal["BCa", "percentile", "basic"]
Distribution: TypeAlias = NDArray[np.float64]

MEMORY = 2_000_000
"""How many cluster numbers are drawn at a time; the draws do not depend on it."""

MANY_CLUSTERS = 2000
"""Above so many the acceleration, of the order of skewness/(6 root n), is nothing, and its jackknife costs the most."""

KNOWN_SHARE = 0.95
"""Below this share of resamples with a finite statistic there are no limits."""

SAME = 1e-12
"""Statistics that differ by less, relatively, differ by rounding only."""


def bootstrap(
    values: ArrayLike,
    *,
    statistic: Statistic,
    clusters: Keys | None = None,
    confidence: float = CONFIDENCE,
    method: Method = "BCa",
    resamples: int = CHEAP_RESAMPLES,
    rng: np.random.Generator,
    drawn: Callable[[Clustered], Drawn | None] | None = None,
) -> Interval:
    """Say how certain a statistic is, by drawing clusters again with replacement.

    Whole clusters are drawn, and BCa's acceleration is the jackknife over clusters (none above 2,000 of them). The
    nominal level is widened by the factor that a t interval over as many clusters would have (Hesterberg 2015):
    without that, intervals of 30 clusters hold the truth one or two times in a hundred less often than they
    promise. The answer does not depend on the order of the values.

    Not for the Vendi score or anything else that duplicates change: every resample has duplicates, duplicates lower
    diversity, and the interval lies below the truth (0 % coverage at a nominal 95 %). Use `interval` over repeats.

    Args:
        values: float, (n,) or (n, d): the statistic is given resampled rows of it.
        statistic: of rows to a number; it may be NaN where it is not defined.
        clusters: (n,): which cluster each row belongs to; without, each row is one.
        confidence: how often such intervals are to hold the truth.
        method: `BCa`, `percentile` or `basic`.
        resamples: how many are drawn.
        rng: where the draws come from.
        drawn: makes of the clusters the same statistic of many draws at once, or None where that is no shortcut; the
            draws are the same with and without it.

    Returns:
        The statistic and its limits. Where the statistic is the same in every resample the width is zero. Limits
        are NaN with a single cluster, and where the resamples do not say where the statistic lies among them.

    Raises:
        UsageError: an argument breaks its rule.
    """
    check_confidence(confidence)
    check_choice("method", method, ("BCa", "percentile", "basic"))
    check_statistic(statistic)
    check_count("resamples", resamples)
    data = clustered(finite_rows("values", values), clusters)
    value = float(statistic(data.rows))
    low, high = (math.nan, math.nan)
    if len(data.names) > 1 and math.isfinite(value):
        many = None if drawn is None else drawn(data)
        of_clusters = one_by_one(data, statistic) if many is None else many
        low, high = limits(data, of_clusters, value, confidence, method, resamples, rng)
    return Interval(value, low, high, len(data.rows), "population")


def check_statistic(statistic: Statistic) -> None:
    """Refuse the statistics for which no bootstrap over items holds."""
    if str(getattr(statistic, "__module__", "")).startswith("culturekit.metrics.diversity"):
        raise argument_error(
            "statistic",
            "one that duplicates do not change; resampling lowers a Vendi score, so use interval() over repeats",
            getattr(statistic, "__name__", statistic),
        )


def one_by_one(data: Clustered, statistic: Statistic) -> Drawn:
    """Compute the statistic of each draw of clusters, one after the other."""
    return lambda drawn: np.array([float(statistic(data.take(row))) for row in drawn])


def limits(
    data: Clustered,
    of_clusters: Drawn,
    value: float,
    confidence: float,
    method: Method,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Draw the resamples, and read the limits off them."""
    from scipy import stats

    numbers = np.arange(len(data.names))
    batch = max(1, MEMORY // len(numbers))

    def of_rows(drawn: NDArray[np.int64], axis: int = -1) -> NDArray[np.float64]:
        """Take draws as scipy gives them: the clusters along the last axis, which is the only one it asks for."""
        return of_clusters(np.atleast_2d(drawn)).reshape(np.shape(drawn)[:axis])

    with warnings.catch_warnings():
        # Of resamples in which the statistic is not defined scipy would warn; they are counted below.
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        drawn = stats.bootstrap(
            (numbers,), of_rows, n_resamples=resamples, batch=batch, vectorized=True, method="percentile", rng=rng
        )
    known = drawn.bootstrap_distribution[np.isfinite(drawn.bootstrap_distribution)]
    if len(known) < KNOWN_SHARE * resamples:
        return math.nan, math.nan
    if np.ptp(known) <= SAME * np.abs(known).max():
        return value, value
    level = widened(confidence, clusters=len(numbers))
    if method != "BCa":
        low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
        return (low, high) if method == "percentile" else (2 * value - high, 2 * value - low)
    drawn.bootstrap_distribution = known
    return bca_limits(drawn, numbers, of_rows, value, level, batch)


def bca_limits(
    drawn: Any,  # noqa: ANN401 - scipy's BootstrapResult, whose class is private
    numbers: NDArray[np.int64],
    of_rows: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    value: float,
    level: float,
    batch: int,
) -> tuple[float, float]:
    """Let scipy correct bias and skewness; a flat jackknife, as of a median with ties, has no acceleration."""
    from scipy import stats

    known: Distribution = drawn.bootstrap_distribution
    below = float(np.mean(known < value) + np.mean(known == value) / 2)
    if below in (0.0, 1.0):
        return math.nan, math.nan
    if len(numbers) > MANY_CLUSTERS:
        return bias_corrected(known, below, level)
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        answer = stats.bootstrap(
            (numbers,),
            of_rows,
            n_resamples=0,
            batch=batch,
            vectorized=True,
            method="BCa",
            confidence_level=level,
            bootstrap_result=drawn,
        ).confidence_interval
    if math.isfinite(answer.low) and math.isfinite(answer.high):
        return float(answer.low), float(answer.high)
    return bias_corrected(known, below, level)


def bias_corrected(known: Distribution, below: float, level: float) -> tuple[float, float]:
    """Read the limits off with the bias corrected and no acceleration."""
    from scipy.special import ndtr, ndtri

    low, high = np.quantile(known, ndtr(2 * ndtri(below) + ndtri([(1 - level) / 2, (1 + level) / 2])))
    return float(low), float(high)


def widened(confidence: float, *, clusters: int) -> float:
    """Give the level at which a normal quantile is as wide as t's, times the root of n/(n - 1)."""
    from scipy.special import ndtr, stdtrit

    quantile = float(stdtrit(clusters - 1, (1 + confidence) / 2))
    return float(2 * ndtr(math.sqrt(clusters / (clusters - 1)) * quantile) - 1)
