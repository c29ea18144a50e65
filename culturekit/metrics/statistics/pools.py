"""Pools of annotators, and how far apart they judge the same items."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from culturekit.defaults import CHEAP_RESAMPLES, CONFIDENCE
from culturekit.metrics.arguments import argument_error
from culturekit.metrics.statistics.comparisons import Comparison, compare
from culturekit.metrics.statistics.correlations import Correlation, correlate
from culturekit.metrics.statistics.intervals import Interval

__all__ = ["PoolDivergence", "pool_divergence"]


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
