"""Scores of countries, groups and all, and the values they are means of, as tables."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from culturekit.metrics.scoring.ladder import Rung, rungs
from culturekit.metrics.scoring.score_rows import Row, Scored, scored, statistic_row
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Target
from culturekit.records.schemas import SCORES

__all__ = ["ITEMS_SCHEMA", "Climb", "climbed"]

ITEMS_SCHEMA = {
    "metric": pl.String(),
    "model": pl.String(),
    "prompt_id": pl.String(),
    "country": pl.String(),
    "item": pl.String(),
    "repeat": pl.UInt16(),
    "value": pl.Float64(),
}
"""What is averaged: one row per metric and item."""


@dataclass(frozen=True, slots=True)
class Climb:
    """How items become scores.

    Attributes:
        params: of each metric.
        per_prompt: the metrics whose items are prompts and not images.
        groups: country -> group.
        scheme: the name of `groups`.
        benchmark: the name under which the scores stand.
        confidence: of the intervals.
        target: what the intervals speak about; None decides for all scores at once: `population` where each model
            has at least 20 prompts, else `these`.
    """

    params: Mapping[str, Mapping[str, object]]
    per_prompt: tuple[str, ...]
    groups: Mapping[str, str]
    scheme: str
    benchmark: str
    confidence: float
    target: Target | None = None


def climbed(items: pl.DataFrame, climb: Climb, left_out: Counter[str]) -> Scored:
    """Average items up the ladder, metric by metric and model by model.

    Values stand under the score of their country, from which groups and all are means; without countries, under
    the score of all. Where some prompts state a country, those that do not are left out and counted.

    Returns:
        Scores, values, and the counts of what was left out.
    """
    has_country = pl.col("country").is_not_null()
    placed = items.filter(has_country.any().over("metric", "model") <= has_country)
    lost = items.join(placed, on=["metric", "model", "item"], how="anti").filter(
        ~pl.col("metric").is_in(climb.per_prompt)
    )
    left_out["images of prompts without a country"] += lost["item"].n_unique()
    parts = placed.sort("metric", "model").partition_by("metric", "model", maintain_order=True)
    target = climb.target or target_for(placed)
    rows = [row for part in parts for row in score_rows(part, climb, target)]
    scores = pl.DataFrame(rows, schema=SCORES.schema, orient="row")
    named = scores.filter(pl.col("group").is_null())
    keys = ["metric", "model", "country"]
    values = placed.join(named.select(*keys, "benchmark", "concept", "group", "params"), on=keys, nulls_equal=True)
    return scored(rows, values, left_out=dict(sorted(left_out.items())))


def target_for(items: pl.DataFrame) -> Target:
    """Decide what intervals speak about, once for all: params that differ would keep scores from being compared."""
    prompts = items.group_by("model").agg(pl.col("prompt_id").n_unique())["prompt_id"].to_list()
    return "population" if prompts and min(prompts) >= FEWEST_PROMPTS else "these"


def score_rows(items: pl.DataFrame, climb: Climb, target: Target) -> Iterator[Row]:
    """Make the scores of one metric and model."""
    metric, model = items["metric"][0], items["model"][0]
    prompt_items = metric in climb.per_prompt
    for rung in rungs(items, climb.groups, target=target, confidence=climb.confidence, prompt_items=prompt_items):
        yield statistic_row(
            metric, model=model, benchmark=climb.benchmark, answer=rung.answer, params=params_of(rung, climb, metric),
            concept=None, country=rung.country, group=rung.group,
        )  # fmt: skip


def params_of(rung: Rung, climb: Climb, metric: str) -> dict[str, object]:
    """Say how a score was computed, and whether its interval speaks about these prompts or their population."""
    scheme = {} if rung.group is None else {"scheme": climb.scheme}
    return {**climb.params[metric], **scheme, "target": rung.answer.target}
