"""The values of one score, item by item: what is correlated with another."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.metrics.scoring.value_sets import parsed

__all__ = ["Series", "items_of", "metric_series"]

SERIES = ("metric", "params")


@dataclass(frozen=True, slots=True)
class Series:
    """One score of many items: what it is, and item, value, and for a metric also model, unit_id and country."""

    about: dict[str, object]
    items: pl.DataFrame


def metric_series(known: pl.DataFrame) -> list[Series]:
    """Give each metric, with its parameters, as a series; an item that stands under several scores counts once."""
    once = known.sort("country", "concept", nulls_last=True).unique(
        [*SERIES, "benchmark", "model", "item"], keep="first", maintain_order=True
    )
    series = []
    ordered = once.sort(*SERIES, "benchmark", "model", "item")
    for part in ordered.partition_by(*SERIES, "benchmark", maintain_order=True):
        row = part.row(0, named=True)
        about = {"metric": row["metric"], "params": parsed(row["params"]), "benchmark": row["benchmark"]}
        series.append(Series(about, part.select("model", "item", "unit_id", "country", "value")))
    return series


def items_of(series: Sequence[Series]) -> set[str]:
    """Gather the items of all."""
    return {item for one in series for item in one.items["item"]}
