"""How far two groups of countries, or of people, lie apart."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.metrics.arguments import argument_error, check_choice, check_confidence, finite_vector
from culturekit.metrics.statistics.clustering import Keys, cluster_keys
from culturekit.metrics.statistics.comparisons import Comparison, difference_of, mean_interval, t_p_value
from culturekit.metrics.statistics.corrections import bonferroni
from culturekit.metrics.statistics.intervals import Interval, Mean, Target, mean_of_these, simple_mean

__all__ = ["group_gap", "mean_over", "strata_of"]

Strata = list[list[NDArray[np.float64]]]


def group_gap(
    values: ArrayLike,
    *,
    groups: Keys,
    first: str,
    second: str,
    countries: Keys,
    prompts: Keys,
    target: Target = "population",
    confidence: float = CONFIDENCE,
    comparisons: int = 1,
) -> Comparison:
    """Subtract the mean of one group from that of another: unweighted over images, prompts, countries.

    The countries are held fixed: the gap speaks about these countries and no others of their group. `population`
    takes the prompts of a country as a sample: t over prompt means, stratified by country. `these` holds the
    prompts fixed as well: t over the images of each prompt, stratified by country and prompt. Either has Welch
    and Satterthwaite's degrees of freedom, and a t test.

    Args:
        values: float, (n,), one per image.
        groups: (n,): the group of each value; values of other groups are left alone.
        first: the group that is subtracted from.
        second: the group that is subtracted.
        countries: (n,): the country of each value.
        prompts: (n,): its prompt; prompts of two countries are two prompts even where they share a name.
        target: whether the gap is about other prompts (`population`), or about `these` only.
        confidence: how often such intervals are to hold the true gap.
        comparisons: how many gaps are looked at in all; the p value is multiplied by it.

    Returns:
        The gap. `n` counts prompts, `common` the countries that are in both groups (none, where groups are of
        countries), `left_out` the values of other groups. The limits are NaN where a country has one prompt
        (`population`) or a prompt one image (`these`).

    Raises:
        UsageError: an argument breaks its rule, or a group has no value.
    """
    check_confidence(confidence)
    check_choice("target", target, ("population", "these"))
    numbers = finite_vector("values", values)
    keys = [
        cluster_keys(name, column, length=len(numbers))
        for name, column in (("groups", groups), ("countries", countries), ("prompts", prompts))
    ]
    chosen = {group: keys[0] == group for group in (first, second)}
    if first == second or not all(mask.any() for mask in chosen.values()):
        raise argument_error("first and second", "two of the groups", (first, second))
    sides = [strata_of(numbers[mask], keys[1][mask], keys[2][mask]) for mask in chosen.values()]
    gap = difference_of(*(mean_over(side, target) for side in sides))
    used = chosen[first] | chosen[second]
    interval = mean_interval(gap, n=int(used.sum()), target=target, confidence=confidence)
    p = t_p_value(gap)
    shared = np.intersect1d(keys[1][chosen[first]], keys[1][chosen[second]])
    count = sum(len(prompt) for side in sides for prompt in side)
    return Comparison(gap.value, tidy(interval), p, bonferroni(p, comparisons), count, len(shared), int((~used).sum()))


def tidy(interval: Interval) -> Interval:
    """Keep the limits in order where rounding would not."""
    return replace(interval, low=min(interval.low, interval.value), high=max(interval.high, interval.value))


def strata_of(values: NDArray[np.float64], countries: NDArray[np.generic], prompts: NDArray[np.generic]) -> Strata:
    """Part values by country, then by prompt, each part in order of its values."""
    country = np.unique(countries, return_inverse=True)[1]
    prompt = np.unique(prompts, return_inverse=True)[1]
    order = np.lexsort((values, prompt, country))
    country, prompt, values = country[order], prompt[order], values[order]
    new_country = np.diff(country, prepend=country[0]) != 0
    ends = np.flatnonzero(new_country | (np.diff(prompt, prepend=prompt[0]) != 0))
    strata: Strata = [[]]
    for part, starts_country in zip(np.split(values, ends), [False, *new_country[ends]], strict=True):
        if starts_country:
            strata.append([])
        strata[-1].append(part)
    return strata


def mean_over(strata: Strata, target: Target) -> Mean:
    """Average over prompts, then over countries."""
    if target == "population":
        return mean_of_these([np.array([simple_mean(prompt).value for prompt in prompts]) for prompts in strata])
    return average_of([mean_of_these(prompts) for prompts in strata])


def average_of(means: list[Mean]) -> Mean:
    """Average independent means, each with the same weight; equal means give exactly that mean."""
    total = Mean(0.0, 0.0, math.nan)
    for mean in means:
        total = difference_of(total, mean)
    value = simple_mean(np.array([mean.value for mean in means])).value
    return Mean(value, total.variance / len(means) ** 2, total.freedom)
