"""The values behind scores, ready to be compared: which belong together, and what was not known."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from culturekit.metrics.catalog import CATALOG
from culturekit.metrics.scoring.image_collections import checked
from culturekit.metrics.scoring.scored import Row, Scored, scored
from culturekit.metrics.statistics.intervals import Interval
from culturekit.records.schemas import VALUES
from culturekit.storage.digests import canonical_json, digest

__all__ = ["COUNTS", "PLACE", "in_tables", "known_values", "own_generator", "parsed", "statistic_row", "with_reason"]

PLACE = ("benchmark", "concept", "country", "group")
"""The columns that say where a value belongs, besides metric, model and params."""

COUNTS = ("images_left_out",)
"""Parameters that count what a score left out; scores that differ in them only are the same score."""


def known_values(values: pl.DataFrame, *, ignore: Sequence[str] = COUNTS) -> tuple[pl.DataFrame, int]:
    """Check values, leave out those that are not known, and count these.

    Of params the keys to ignore are dropped. The column `unit_id` is the prompt of a value, or its item where no
    prompt is stated: what a comparison resamples and pairs.
    """
    table = checked(values, VALUES)
    known = table.filter(pl.col("value").is_finite().fill_null(value=False))
    texts = known["params"].unique().to_list()
    plain = {text: without(text, ignore) for text in texts}
    known = known.with_columns(
        pl.col("params").replace_strict(plain, return_dtype=pl.String) if plain else pl.col("params"),
        unit_id=pl.coalesce("prompt_id", "item"),
    )
    return known.sort(*VALUES.key), table.height - known.height


def without(params: str, keys: Sequence[str]) -> str:
    """Drop keys from params."""
    kept = {key: value for key, value in parsed(params).items() if key not in keys}
    return canonical_json(kept).decode()


def parsed(params: str) -> dict[str, Any]:
    """Read params as JSON."""
    return msgspec.json.decode(params.encode(), type=dict[str, Any])


def own_generator(seed: int, *key: object) -> np.random.Generator:
    """Make the generator of one row: it depends on the seed and the row's own key, not on what else is computed."""
    return np.random.default_rng([seed, int(digest([str(part) for part in key])[:16], 16)])


def in_tables(scores: Sequence[Row], values: Sequence[Row] | pl.DataFrame, left_out: Mapping[str, int]) -> Scored:
    """Put rows into tables; reasons for which nothing was left out are not named."""
    return scored(scores, values, left_out={reason: count for reason, count in left_out.items() if count})


def statistic_row(
    metric: str, *, model: str, benchmark: str, answer: Interval, params: Mapping[str, object], **place: str | None
) -> Row:
    """Write one statistic; a limit that is not known is null."""
    return {
        "metric": metric,
        "model": model,
        "benchmark": benchmark,
        **place,
        "params": canonical_json(dict(params)).decode(),
        "value": answer.value,
        "ci_low": None if math.isnan(answer.low) else answer.low,
        "ci_high": None if math.isnan(answer.high) else answer.high,
        "n": answer.n,
        "unit": CATALOG[metric].unit,
    }


def with_reason(params: dict[str, object], answer: Interval, reason: str) -> dict[str, object]:
    """Say in params why there is no interval, where there is none."""
    return {**params, "no_interval": reason} if math.isnan(answer.low) else params
