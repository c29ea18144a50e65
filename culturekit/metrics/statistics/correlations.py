"""How well one score follows another, with BCa intervals over clusters."""

import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.choices import CHEAP_RESAMPLES, CONFIDENCE
from culturekit.core.errors import argument_error, check_choice
from culturekit.metrics.arguments import check_confidence, check_count, finite_vector
from culturekit.metrics.statistics.intervals import (
    Clustered,
    Counts,
    Drawn,
    Interval,
    Keys,
    clustered,
    finite_rows,
    of_draws,
)

# The bootstrap over clusters, on scipy: BCa limits widened for small samples.

Statistic: TypeAlias = Callable[[NDArray[np.float64]], float]
Method: TypeAlias = Literal["BCa", "percentile", "basic"]
Distribution: TypeAlias = NDArray[np.float64]

MEMORY = 2_000_000  # How many cluster numbers are drawn at a time; the draws do not depend on it

# Above so many the acceleration, of the order of skewness/(6 root n), is nothing, and its jackknife costs the most
MANY_CLUSTERS = 2000

KNOWN_SHARE = 0.95  # Below this share of resamples with a finite statistic there are no limits

SAME = 1e-12  # Statistics that differ by less, relatively, differ by rounding only


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
    if str(getattr(inspect.unwrap(statistic), "__module__", "")).startswith("culturekit.metrics.diversity"):
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


Correlation: TypeAlias = Literal["spearman", "kendall", "pearson"]
CORRELATIONS: tuple[Correlation, ...] = ("spearman", "kendall", "pearson")

FEWEST_CLUSTERS = 10  # With fewer, no interval of a correlation deserves the name

MOST_FOR_KENDALL = 1500  # With more clusters, a table of clusters by clusters takes longer than draw after draw

FLAT = 1e-9  # A draw that scatters less than this share of all scatter is computed on its own: rounding would decide

Scalar = Callable[[NDArray[np.float64]], float]


def correlate(
    a: ArrayLike,
    b: ArrayLike,
    *,
    method: Correlation = "spearman",
    clusters: Keys | None = None,
    confidence: float = CONFIDENCE,
    resamples: int = CHEAP_RESAMPLES,
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


def drawn_pearson(data: Clustered, one: Scalar) -> Drawn:
    """Compute Pearson's r of each draw; `one` computes it of rows, for draws with next to no scatter."""
    shifts = data.rows - data.rows.mean(axis=0)
    spread = np.ptp(data.rows, axis=0)
    x, y = (shifts / np.where(spread > 0, spread, 1.0)).T
    sums = np.add.reduceat(np.column_stack([np.ones_like(x), x, y, x * x, y * y, x * y]), data.starts, axis=0)
    whole = np.array([float((x * x).sum()), float((y * y).sum())]) / len(x)

    def of(times: Counts) -> NDArray[np.float64]:
        n, sx, sy, sxx, syy, sxy = (times @ sums).T
        own_x, own_y = sxx - sx**2 / n, syy - sy**2 / n
        with np.errstate(invalid="ignore", divide="ignore"):
            found = np.clip((sxy - sx * sy / n) / np.sqrt(own_x * own_y), -1.0, 1.0)
        for draw in np.flatnonzero((own_x / n <= FLAT * whole[0]) | (own_y / n <= FLAT * whole[1])):
            found[draw] = one(data.take(np.repeat(np.arange(times.shape[1]), times[draw].astype(np.int64))))
        return np.asarray(found)

    return of_draws(of, clusters=len(data.names))


def drawn_spearman(data: Clustered) -> Drawn:
    """Compute Spearman's rho of each draw: ranks are those within the draw."""
    cluster = np.repeat(np.arange(len(data.names)), data.sizes)
    x, y = Levels(data.rows[:, 0]), Levels(data.rows[:, 1])

    def of(times: Counts) -> NDArray[np.float64]:
        weights = times[:, cluster]
        middle = (weights.sum(axis=1, keepdims=True) + 1) / 2
        first, second = x.mid_ranks(weights) - middle, y.mid_ranks(weights) - middle
        product, own_x, own_y = (
            (weights * left * right).sum(axis=1) for left, right in ((first, second), (first, first), (second, second))
        )
        scatter = np.sqrt(np.where(own_x > 0, own_x, np.nan)) * np.sqrt(np.where(own_y > 0, own_y, np.nan))
        return np.asarray(np.clip(product / scatter, -1.0, 1.0))

    return of_draws(of, clusters=len(data.names), width=max(1, 4 * len(cluster) // len(data.names)))


def drawn_kendall(data: Clustered) -> Drawn:
    """Compute Kendall's tau-b of each draw, from how clusters are ordered against each other."""
    cluster = np.repeat(np.arange(len(data.names)), data.sizes)
    x, y = Levels(data.rows[:, 0]), Levels(data.rows[:, 1])
    ordered = concordance(data, x.of_row, y.of_row)

    def of(times: Counts) -> NDArray[np.float64]:
        weights = times[:, cluster]
        surplus = ((times @ ordered) * times).sum(axis=1) / 2
        pairs = pairs_of(weights.sum(axis=1))
        apart_x, apart_y = pairs - x.tied_pairs(weights), pairs - y.tied_pairs(weights)
        scatter = np.sqrt(np.where(apart_x > 0, apart_x, np.nan)) * np.sqrt(np.where(apart_y > 0, apart_y, np.nan))
        return np.asarray(np.clip(surplus / scatter, -1.0, 1.0))

    return of_draws(of, clusters=len(data.names), width=max(1, 2 * len(cluster) // len(data.names)))


def concordance(data: Clustered, x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum over the pairs of rows of two clusters whether both scores order them alike (1) or not (-1)."""
    found = np.empty((len(data.names), len(data.names)))
    for number, (start, size) in enumerate(zip(data.starts, data.sizes, strict=True)):
        rows = slice(start, start + size)
        alike = np.sign(x[rows, None] - x[None]) * np.sign(y[rows, None] - y[None])
        found[number] = np.add.reduceat(alike.sum(axis=0), data.starts)
    return found


def pairs_of(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Count the pairs among so many."""
    return numbers * (numbers - 1) / 2


class Levels:
    """The different values of a score, in order, and which rows have which."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        """Sort the values once; draws change how often each row counts, never the order."""
        self.of_row = np.unique(values, return_inverse=True)[1].astype(np.int64)
        self.order = np.argsort(self.of_row, kind="stable")
        self.starts = np.flatnonzero(np.diff(self.of_row[self.order], prepend=-1))

    def counts(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Count the rows of each value, (draws, n_levels), from how often each row counts, (draws, n)."""
        return np.asarray(np.add.reduceat(weights[:, self.order], self.starts, axis=1))

    def mid_ranks(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give each row the mean rank of its value within the draw, (draws, n)."""
        counts = self.counts(weights)
        return (np.cumsum(counts, axis=1) - (counts - 1) / 2)[:, self.of_row]

    def tied_pairs(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Count the pairs of rows with the same value, (draws,)."""
        return np.asarray(pairs_of(self.counts(weights)).sum(axis=1))
