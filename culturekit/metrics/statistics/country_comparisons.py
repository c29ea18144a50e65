"""Two models over several countries, in which each country counts the same however many prompts it has."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.metrics.arguments import check_choice, finite_vector
from culturekit.metrics.statistics.clustering import Keys, check_confidence, cluster_keys
from culturekit.metrics.statistics.comparisons import (
    Comparison,
    difference_of,
    mean_interval,
    sign_flip_p,
    t_p_value,
)
from culturekit.metrics.statistics.group_gaps import mean_over, strata_of
from culturekit.metrics.statistics.intervals import Target, mean_of_these

__all__ = ["compare_over_countries"]


@dataclass(frozen=True, slots=True)
class Side:
    """The values of one model with the prompt and the country of each, all (n,)."""

    values: NDArray[np.float64]
    clusters: NDArray[np.generic]
    countries: NDArray[np.generic]

    def keep(self, common: NDArray[np.generic]) -> "Side":
        """Keep the prompts named."""
        mask = np.isin(self.clusters, common)
        return Side(self.values[mask], self.clusters[mask], self.countries[mask])

    def strata(self) -> list[list[NDArray[np.float64]]]:
        """Part the values by country, then by prompt."""
        return strata_of(self.values, self.countries, self.clusters)


def compare_over_countries(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: tuple[Keys, Keys],
    countries: tuple[Keys, Keys],
    paired: bool = True,
    target: Target = "population",
    confidence: float = CONFIDENCE,
    resamples: int = 9999,
    rng: np.random.Generator,
) -> Comparison:
    """Compare two models as `compare` does, with means taken over prompts, then over countries.

    Paired, the interval is t over the prompts' differences, stratified by country, and the test flips their signs.
    Unpaired, or for `these` prompts, both are of the difference of two stratified means.

    Args:
        a: float, (n,): values of the first model.
        b: float, (m,): values of the second.
        clusters: (n,) and (m,): the prompt of each value; a prompt lies in one country.
        countries: (n,) and (m,): the country of each value.
        paired: whether only common prompts enter, prompt against prompt.
        target: `population` or `these`, as in `compare`.
        confidence: of the interval.
        resamples: of the permutation test.
        rng: where the permutations come from.

    Raises:
        UsageError: an argument breaks its rule.
    """
    check_confidence(confidence)
    check_choice("target", target, ("population", "these"))
    first, second = (
        read_side(name, *side) for name, side in zip("ab", zip((a, b), clusters, countries, strict=True), strict=True)
    )
    common = np.intersect1d(first.clusters, second.clusters)
    every = len(np.union1d(first.clusters, second.clusters))
    if paired:
        first, second = first.keep(common), second.keep(common)
    sides = first.strata(), second.strata()
    if paired and target == "population":
        strata = [
            np.array([one.mean() - other.mean() for one, other in zip(*prompts, strict=True)])
            for prompts in zip(*sides, strict=True)
        ]
        gap = mean_of_these(strata)
        p = sign_flip_p(np.concatenate([part / len(part) for part in strata]), "two-sided", resamples, rng)
    else:
        gap = difference_of(*(mean_over(side, target) for side in sides))
        p = t_p_value(gap)
    n = len(first.values) + len(second.values)
    answer = mean_interval(gap, n=n, target=target, confidence=confidence)
    entered = len(common) if paired else every
    return Comparison(gap.value, answer, p, p, entered, len(common), every - entered)


def read_side(name: str, values: ArrayLike, clusters: Keys, countries: Keys) -> Side:
    """Read the values of one side with their keys."""
    numbers = finite_vector(name, values)
    return Side(
        numbers,
        cluster_keys(f"clusters of {name}", clusters, length=len(numbers)),
        cluster_keys(f"countries of {name}", countries, length=len(numbers)),
    )
