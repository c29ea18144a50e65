"""The ladder from images to the world: unweighted means, what they speak about, and their rows of scores and values."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.schemas import SCORES, VALUES
from culturekit.metrics.statistics.intervals import (
    FEWEST_PROMPTS,
    Interval,
    Target,
    half_width,
    mean_of_means,
    mean_of_these,
    simple_mean,
)
from culturekit.scores.score_rows import Row, Scored, scored, statistic_row


class Rung(NamedTuple):
    """The score of a country, of a group of countries, or, with neither, of all; its answer counts items."""

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
    for prompt in values.sort("country", "prompt_id", "item").partition_by("country", "prompt_id", maintain_order=True):
        strata.setdefault(prompt["country"][0] or "", []).append(prompt["value"].to_numpy())
    if not strata:
        return
    average = partial(_mean_over, target=target, confidence=confidence, prompt_items=prompt_items)
    stated = {country: prompts for country, prompts in strata.items() if country}
    yield Rung(None, None, average(list((stated or strata).values())))
    for country, prompts in stated.items():
        yield Rung(country, None, average([prompts]))
    for group in sorted({groups[country] for country in stated if country in groups}):
        members = [prompts for country, prompts in stated.items() if groups.get(country) == group]
        yield Rung(None, group, average(members))


def _mean_over(
    countries: Sequence[Sequence[NDArray[np.float64]]], *, target: Target, confidence: float, prompt_items: bool
) -> Interval:
    """Average the values of images over prompts, then over countries, with the interval where the numbers allow it."""
    if target == "population":
        parts = [simple_mean(np.array([simple_mean(prompt).value for prompt in prompts])) for prompts in countries]
        known = sum(map(len, countries)) >= FEWEST_PROMPTS
    else:
        parts, known = [mean_of_these(prompts) for prompts in countries], not prompt_items
    mean = mean_of_means(parts)
    margin = half_width(mean, confidence=confidence) if known else math.nan
    items = sum(len(prompt) for prompts in countries for prompt in prompts)
    return Interval(mean.value, mean.value - margin, mean.value + margin, items, target)


_NAMES = ("metric", "model", "prompt_id", "country", "item", "repeat", "value")
ITEMS_SCHEMA = {name: VALUES.schema[name] for name in _NAMES}  # what is averaged: one row per metric and item


@dataclass(frozen=True, slots=True)
class Climb:
    """How items become scores."""

    params: Mapping[str, Mapping[str, object]]  # of each metric
    per_prompt: tuple[str, ...]  # the metrics whose items are prompts and not images
    groups: Mapping[str, str]  # country -> group
    scheme: str  # the name of `groups`
    benchmark: str
    confidence: float
    target: Target | None = None  # None: `population` where each model has at least 20 prompts, else `these`


def climbed(items: pl.DataFrame, climb: Climb, left_out: Counter[str]) -> Scored:
    """Average items up the ladder, metric by metric and model by model, and count what is left out.

    Values stand under the score of their country, from which groups and all are means; without countries, under
    the score of all. Where some prompts state a country, those that do not are left out.
    """
    has_country, of_image = pl.col("country").is_not_null(), ~pl.col("metric").is_in(climb.per_prompt)
    placed = items.filter(has_country.any().over("metric", "model") <= has_country)
    lost = items.join(placed, on=["metric", "model", "item"], how="anti").filter(of_image)
    left_out["images of prompts without a country"] += lost["item"].n_unique()
    apart = placed.filter(has_country & ~pl.col("country").is_in(list(climb.groups)), of_image)
    if apart.height and climb.groups:
        names = ", ".join(apart["country"].unique().sort())
        reason = f"images of countries in no group of {climb.scheme}, which stand in no group's score: {names}"
        left_out[reason] += apart["item"].n_unique()
    # Decided once for all scores: params that differ would keep them from being compared.
    prompts = placed.group_by("model").agg(pl.col("prompt_id").n_unique())["prompt_id"].to_list()
    target = climb.target or ("population" if prompts and min(prompts) >= FEWEST_PROMPTS else "these")
    parts = placed.sort("metric", "model").partition_by("metric", "model", maintain_order=True)
    rows = [row for part in parts for row in _score_rows(part, climb, target)]
    named = pl.DataFrame(rows, schema=SCORES.schema, orient="row").filter(pl.col("group").is_null())
    keys = ["metric", "model", "country"]
    values = placed.join(named.select(*keys, "benchmark", "concept", "group", "params"), on=keys, nulls_equal=True)
    return scored(rows, values, left_out=left_out)


def _score_rows(items: pl.DataFrame, climb: Climb, target: Target) -> Iterator[Row]:
    """Make the scores of one metric and model, each with how it was computed and what its interval speaks about."""
    metric, model = items["metric"][0], items["model"][0]
    prompt_items = metric in climb.per_prompt
    for country, group, answer in rungs(
        items, climb.groups, target=target, confidence=climb.confidence, prompt_items=prompt_items
    ):
        params = {
            **climb.params[metric],
            **({} if group is None else {"scheme": climb.scheme}),
            "target": answer.target,
        }
        yield statistic_row(metric, model=model, benchmark=climb.benchmark, answer=answer, params=params, concept=None,
                            country=country, group=group)  # fmt: skip
