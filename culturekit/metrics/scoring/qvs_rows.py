"""One score of a collection, its interval, and the means of repeats that it was averaged from."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.metrics.catalog import CATALOG
from culturekit.metrics.scoring.image_collections import ImageCollection
from culturekit.metrics.scoring.scored import Row
from culturekit.metrics.statistics.intervals import Interval, Target, interval
from culturekit.records.schemas import VALUES
from culturekit.storage.digests import canonical_json

__all__ = ["Answer", "over_repeats", "score_row", "value_rows"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A score before it is written down.

    Attributes:
        images: what was scored.
        metric: its name in the catalogue.
        params: how it was scored.
        interval: the value and its limits.
        entered: how many images went in.
        repeats: float64, (n_repeats,): the mean of each repeat, NaN where it has none; empty without repeats.
    """

    images: ImageCollection
    metric: str
    params: Mapping[str, object]
    interval: Interval
    entered: int
    repeats: NDArray[np.float64]


def over_repeats(
    images: ImageCollection,
    values: NDArray[np.float64],
    firsts: NDArray[np.int64],
    what: tuple[str, Mapping[str, object]],
    entered: int,
    *,
    target: Target,
    confidence: float,
) -> Answer:
    """Average values, (n,), over each repeat, then over repeats, then over prompts.

    Args:
        images: with repeats.
        values: NaN is a value that is not known.
        firsts: int64, (n,): the number of an image that a value comes from, whose repeat it belongs to.
        what: the metric and its parameters.
        entered: how many images went in.
        target: what the interval speaks about.
        confidence: of the interval.
    """
    if images.repeats is None:
        raise ValueError("a whole collection has no repeats")
    known = np.isfinite(values)
    repeat, count = images.repeats.of_image[firsts[known]], len(images.repeats.prompts)
    counts = np.bincount(repeat, minlength=count)
    sums = np.bincount(repeat, weights=values[known], minlength=count)
    means = np.divide(sums, counts, out=np.full(count, np.nan), where=counts > 0)
    seen = np.flatnonzero(counts)
    if not len(seen):
        return Answer(images, *what, Interval(math.nan, math.nan, math.nan, 0, target), entered, means)
    prompts, numbers = images.repeats.prompts[seen], images.repeats.numbers[seen]
    answer = interval(means[seen], prompts=prompts, repeats=numbers, target=target, confidence=confidence)
    return Answer(images, *what, replace(answer, n=int(known.sum())), entered, means)


def score_row(answer: Answer, benchmark: str) -> Row:
    """Write one score; a limit that is not known is null."""
    found = answer.interval
    return {
        "metric": answer.metric,
        "model": answer.images.model,
        "benchmark": benchmark,
        "concept": answer.images.concept,
        "country": answer.images.country,
        "params": canonical_json(answer.params).decode(),
        "value": found.value,
        "ci_low": None if math.isnan(found.low) else found.low,
        "ci_high": None if math.isnan(found.high) else found.high,
        "n": answer.entered,
        "unit": CATALOG[answer.metric].unit,
    }


def value_rows(answer: Answer, benchmark: str) -> pl.DataFrame:
    """Write the mean of each repeat; one that is not known is null. Its item is the prompt, a slash, the repeat."""
    repeats = answer.images.repeats
    if repeats is None:
        return pl.DataFrame(schema=VALUES.schema)
    texts = {
        "metric": answer.metric,
        "model": answer.images.model,
        "benchmark": benchmark,
        "concept": answer.images.concept,
        "country": answer.images.country,
        "group": None,
        "params": canonical_json(answer.params).decode(),
    }
    rows = pl.DataFrame({"prompt_id": repeats.prompts, "repeat": repeats.numbers, "value": answer.repeats})
    return rows.with_columns(
        *(pl.lit(text, pl.String).alias(name) for name, text in texts.items()),
        pl.col("value").fill_nan(None),
        item=pl.format("{}/{}", "prompt_id", "repeat"),
    ).select(pl.col(name).cast(dtype) for name, dtype in VALUES.schema.items())
