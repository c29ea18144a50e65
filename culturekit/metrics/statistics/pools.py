"""Pools of annotators: how far apart they judge the same items, and how a judge model's verdicts stand to theirs.

Without a record of the latter no judge is to be used.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.choices import CHEAP_RESAMPLES, CONFIDENCE
from culturekit.core.errors import UsageError, argument_error
from culturekit.metrics.arguments import finite_vector
from culturekit.metrics.statistics.chance_corrected import Level, krippendorff_alpha
from culturekit.metrics.statistics.comparisons import Comparison, compare
from culturekit.metrics.statistics.correlations import FEWEST_CLUSTERS, Correlation, bootstrap, correlate
from culturekit.metrics.statistics.intervals import Interval, Keys


@dataclass(frozen=True, slots=True)
class PoolDivergence:
    """How two pools of annotators differ on the items that both have judged.

    Attributes:
        difference: of their item scores, paired by item; `left_out` counts the items that one pool alone judged.
        correlation: of their item scores; the limits are NaN with fewer than ten items.
    """

    difference: Comparison
    correlation: Interval


def pool_divergence(
    first: Mapping[str, float],
    second: Mapping[str, float],
    *,
    method: Correlation = "spearman",
    confidence: float = CONFIDENCE,
    comparisons: int = 1,
    resamples: int = CHEAP_RESAMPLES,
    rng: np.random.Generator,
) -> PoolDivergence:
    """Compare the item scores of two pools: whether one judges higher, and whether they order items alike.

    Pools are never merged here. Where they differ, one number for both would stand for neither.

    Args:
        first: item -> the mean of the pool's annotators.
        second: the same of the other pool.
        method: of the correlation.
        confidence: of both intervals.
        comparisons: how many pairs of pools are looked at; the p value is multiplied by it.
        resamples: of the permutation test and the bootstrap.
        rng: where they come from.

    Raises:
        UsageError: the pools have no item in common, or a score is not finite.
    """
    common = sorted(first.keys() & second.keys())
    if not common:
        raise argument_error("second", "scores of items that first has too", sorted(second))
    tests, draws = rng.spawn(2)
    difference = compare(
        list(first.values()),
        list(second.values()),
        clusters=(list(first), list(second)),
        confidence=confidence,
        comparisons=comparisons,
        resamples=resamples,
        rng=tests,
    )
    follows = correlate(
        [first[item] for item in common],
        [second[item] for item in common],
        method=method,
        confidence=confidence,
        resamples=resamples,
        rng=draws,
    )
    return PoolDivergence(difference, follows)


@dataclass(frozen=True, slots=True)
class JudgeCalibration:
    """The calibration record of a judge against one pool.

    Attributes:
        pool: the people it was held against; the record says nothing of any other.
        n: items that both judged.
        bias: the mean of judge minus people.
        interval: of the bias.
        agreement: Krippendorff's alpha of the judge and the pool's item means, and its limits.
        level: of alpha.
    """

    pool: str
    n: int
    bias: float
    interval: Interval
    agreement: Interval
    level: Level


def calibrate_judge(
    judgments: ArrayLike,
    people: ArrayLike,
    *,
    pool: str,
    clusters: Keys | None = None,
    level: Level = "interval",
    confidence: float = CONFIDENCE,
    resamples: int = CHEAP_RESAMPLES,
    rng: np.random.Generator,
) -> JudgeCalibration:
    """Hold a judge's verdicts against the item means of a pool of people.

    Args:
        judgments: float, (n,): the judge's verdict on each item; shares or 0 and 1 for yes and no.
        people: float, (n,): the mean of the pool's annotators on the same item, on the same scale.
        pool: the name of the pool.
        clusters: (n,): which items belong together, such as the images of a prompt.
        level: of Krippendorff's alpha.
        confidence: of both intervals.
        resamples: of the bootstrap of alpha.
        rng: where the resamples come from.

    Returns:
        The record. The limits of alpha are NaN with fewer than ten clusters.

    Raises:
        UsageError: an argument breaks its rule; a pool without a name is one.
    """
    if not pool:
        raise UsageError("a calibration record names its pool of people", found=repr(pool))
    verdicts = finite_vector("judgments", judgments)
    means = finite_vector("people", people, length=len(verdicts))
    keys = np.arange(len(verdicts)) if clusters is None else clusters
    tests, draws = rng.spawn(2)
    bias = compare(verdicts, means, clusters=keys, confidence=confidence, resamples=1, rng=tests)
    pairs = np.column_stack([verdicts, means])

    def alpha(rows: NDArray[np.float64]) -> float:
        return krippendorff_alpha(rows.T, level=level)

    if bias.n < FEWEST_CLUSTERS:
        agreement = Interval(alpha(pairs), np.nan, np.nan, len(pairs), "population")
    else:
        agreement = bootstrap(
            pairs, statistic=alpha, clusters=keys, confidence=confidence, resamples=resamples, rng=draws
        )
    return JudgeCalibration(pool, len(verdicts), bias.difference, bias.interval, agreement, level)
