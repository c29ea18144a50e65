"""How certain coverage is: the generated images vary, the real ones are held fixed."""

import numpy as np
from numpy.typing import NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.metrics.realism.image_means import Scatter, t_interval
from culturekit.metrics.realism.manifolds import Neighbourhoods
from culturekit.metrics.statistics.clustering import check_confidence
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Interval

__all__ = ["coverage_interval"]


def coverage_interval(
    found: Neighbourhoods, *, strata: NDArray[np.int64] | None, groups: int, confidence: float = CONFIDENCE
) -> Interval:
    """Give coverage with a jackknife interval over groups of fakes.

    A bootstrap would be wrong: a resample has copies, which cover nothing new, and leaves a third of the fakes out.
    The jackknife leaves out one group at a time: the reals that only it covers are lost. Its variance is not below
    the true one on average (Efron and Stein 1981).

    Args:
        found: with groups numbered 0 to `groups` - 1.
        strata: int64, (groups,): what each group is drawn from and stays in, such as the prompt where groups are
            images; None where groups are a sample.
        groups: how many there are.
        confidence: how often such intervals are to hold the coverage that as many fakes have on average.

    Returns:
        Coverage with limits in [0, 1]; n counts the reals. Limits are NaN with fewer than 20 groups that are a
        sample, or with a stratum of one.
    """
    check_confidence(confidence)
    alone = np.bincount(found.only_group[found.only_group >= 0], minlength=groups) / len(found.covered)
    spread = sampled(alone) if strata is None else stratified(alone, strata)
    target = "population" if strata is None else "these"
    answer = t_interval(float(found.covered.mean()), spread, len(found.covered), target, confidence)
    low, high = np.clip([answer.low, answer.high], 0, 1)
    return Interval(answer.value, float(low), float(high), answer.n, target)


def sampled(alone: NDArray[np.float64]) -> Scatter:
    """Give the jackknife's variance over groups."""
    groups = len(alone)
    if groups < FEWEST_PROMPTS:
        return Scatter(np.nan, 0, groups)
    return Scatter(float((groups - 1) * alone.var()), groups - 1, groups)


def stratified(alone: NDArray[np.float64], strata: NDArray[np.int64]) -> Scatter:
    """Give the jackknife's variance with the number of groups of each stratum fixed."""
    sizes = np.bincount(strata)
    if sizes.min() < 2:
        return Scatter(np.nan, 0, len(alone))
    means = np.bincount(strata, alone) / sizes
    squares = np.bincount(strata, np.square(alone - means[strata]))
    return Scatter(float((squares * (sizes - 1) / sizes).sum()), len(alone) - len(sizes), len(alone))
