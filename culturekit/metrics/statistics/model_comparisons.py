"""All pairs of models on the same prompts, with p values corrected for their number; and two models over countries."""

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE, PERMUTATIONS
from culturekit.errors import UsageError
from culturekit.metrics.arguments import check_choice, check_confidence, finite_vector
from culturekit.metrics.statistics.clustering import Keys, cluster_keys
from culturekit.metrics.statistics.comparisons import (
    Comparison,
    compare,
    difference_of,
    mean_interval,
    sign_flip_p,
    t_p_value,
)
from culturekit.metrics.statistics.corrections import corrected
from culturekit.metrics.statistics.group_gaps import mean_over, strata_of
from culturekit.metrics.statistics.intervals import Target, mean_of_these

if TYPE_CHECKING:
    import polars as pl

__all__ = ["compare_models", "compare_over_countries"]

NEEDED = ("model", "prompt_id", "value")


def compare_models(
    values: "pl.DataFrame",
    *,
    paired: bool = True,
    target: Target = "population",
    correction: str = "holm",
    confidence: float = CONFIDENCE,
    resamples: int = PERMUTATIONS,
    rng: np.random.Generator,
) -> "pl.DataFrame":
    """Compare every model with every other, as `compare` does, and correct the p values for all pairs together.

    Args:
        values: with the columns model, prompt_id and value; further columns are left alone, and so is a value
            that is null or NaN.
        paired: as in `compare`, like the other arguments.
        target: `population` or `these`.
        correction: `holm` or `benjamini-hochberg`.
        confidence: of each interval; intervals are not widened for the number of pairs.
        resamples: of each permutation test.
        rng: where the permutations come from; each pair draws from a generator of its own.

    Returns:
        One row per pair of models, a before b in the alphabet: a, b, difference, low, high, p, p_corrected, n,
        common, left_out.

    Raises:
        UsageError: an argument breaks its rule, there are not two models, or two have no prompt in common.
    """
    import polars as pl

    missing = [name for name in NEEDED if name not in values.columns]
    if missing:
        raise UsageError(f"values must have the columns {', '.join(NEEDED)}", found=f"no {', '.join(missing)}")
    known = values.select(NEEDED).filter(pl.col("value").is_not_null() & pl.col("value").is_not_nan())
    sides = {part["model"][0]: part for part in known.sort("model").partition_by("model", maintain_order=True)}
    pairs = list(itertools.combinations(sorted(sides), 2))
    if not pairs:
        raise UsageError("values must be of at least two models", found=", ".join(map(str, sides)) or "none")
    rows = []
    for (a, b), own in zip(pairs, rng.spawn(len(pairs)), strict=True):
        answer = compare(
            sides[a]["value"].to_numpy(),
            sides[b]["value"].to_numpy(),
            clusters=(sides[a]["prompt_id"].to_numpy().astype(str), sides[b]["prompt_id"].to_numpy().astype(str)),
            paired=paired,
            target=target,
            confidence=confidence,
            resamples=resamples,
            rng=own,
        )
        rows.append({"a": a, "b": b, **as_row(answer)})
    p = corrected([row["p"] for row in rows], correction=correction)
    return pl.DataFrame(rows).insert_column(6, pl.Series("p_corrected", p))


def as_row(answer: Comparison) -> dict[str, float]:
    """Write a comparison as columns."""
    return {
        "difference": answer.difference,
        "low": answer.interval.low,
        "high": answer.interval.high,
        "p": answer.p,
        "n": answer.n,
        "common": answer.common,
        "left_out": answer.left_out,
    }


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
    resamples: int = PERMUTATIONS,
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
