"""The ladder from images to the world: unweighted means over images, prompts, countries, and what they speak about."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.metrics.statistics.intervals import (
    FEWEST_PROMPTS,
    Interval,
    Mean,
    Target,
    half_width,
    mean_of_these,
    simple_mean,
)

__all__ = ["Rung", "combined", "rungs"]


@dataclass(frozen=True, slots=True)
class Rung:
    """One score: of a country, of a group of countries, or, with neither, of all.

    Attributes:
        country: its code; None for a group and for all.
        group: its name; None for a country and for all.
        answer: the mean and its interval; `n` counts items.
    """

    country: str | None
    group: str | None
    answer: Interval


def rungs(
    values: pl.DataFrame, groups: Mapping[str, str], *, target: Target, confidence: float, prompt_items: bool
) -> Iterator[Rung]:
    """Climb from items to prompts, countries, groups and all, taking unweighted means at each step.

    With the target `population` the interval is a t interval over prompts, stratified by country: it speaks about
    other prompts of these countries. It is unknown where there are fewer than 20 prompts, or a country has
    one. With `these` the prompts are held fixed and it is a t interval over the images of each; it is unknown
    where a prompt has one image, or where the items are prompts themselves.

    Args:
        values: prompt_id, country, item, value: one row per item, no value NaN. Where no country is stated the
            prompts are one stratum; where some state one, the others are left out.
        groups: country -> group; a country without a group is in none.
        target: what the intervals speak about.
        confidence: of the intervals.
        prompt_items: whether items are prompts and not images.

    Yields:
        All, then each country, then each group, in alphabetical order.
    """
    strata: dict[str, list[NDArray[np.float64]]] = {}
    ordered = values.sort("country", "prompt_id", "item")
    for prompt in ordered.partition_by("country", "prompt_id", maintain_order=True):
        strata.setdefault(prompt["country"][0] or "", []).append(prompt["value"].to_numpy())
    if not strata:
        return
    average = partial(mean_over, target=target, confidence=confidence, prompt_items=prompt_items)
    stated = {country: prompts for country, prompts in strata.items() if country}
    yield Rung(None, None, average(list((stated or strata).values())))
    for country, prompts in stated.items():
        yield Rung(country, None, average([prompts]))
    for group in sorted({groups[country] for country in stated if country in groups}):
        members = [prompts for country, prompts in stated.items() if groups.get(country) == group]
        yield Rung(None, group, average(members))


def mean_over(
    countries: Sequence[Sequence[NDArray[np.float64]]], *, target: Target, confidence: float, prompt_items: bool
) -> Interval:
    """Average the values of images over prompts, then over countries, with the interval where the numbers allow it."""
    if target == "population":
        parts = [simple_mean(np.array([simple_mean(prompt).value for prompt in prompts])) for prompts in countries]
        known = sum(map(len, countries)) >= FEWEST_PROMPTS
    else:
        parts, known = [mean_of_these(prompts) for prompts in countries], not prompt_items
    mean = combined(parts)
    margin = half_width(mean, confidence=confidence) if known else math.nan
    items = sum(len(prompt) for prompts in countries for prompt in prompts)
    return Interval(mean.value, mean.value - margin, mean.value + margin, items, target)


def combined(means: Sequence[Mean]) -> Mean:
    """Average independent means, each with the same weight: degrees of freedom after Welch and Satterthwaite."""
    value = simple_mean(np.array([mean.value for mean in means])).value
    variances = np.array([mean.variance for mean in means])
    total = float(variances.sum())
    if not total > 0:
        return Mean(value, total, math.nan)
    parts = variances / total
    freedom = 1 / sum(part**2 / mean.freedom for part, mean in zip(parts, means, strict=True) if part > 0)
    return Mean(value, total / len(means) ** 2, float(freedom))
