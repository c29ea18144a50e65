"""From values to means over repeats, to an interval, to rows of scores and of values: what every family writes with."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.digests import canonical_json
from culturekit.core.errors import UsageError
from culturekit.core.schemas import SCORES, VALUES
from culturekit.metrics.statistics.intervals import Interval, Mean, Target, half_width, interval
from culturekit.scores.catalog import CATALOG

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Repeats:
    """The repeats that some ordered rows, such as images or batches, belong to."""

    of_row: NDArray[np.int64]  # int64, (n_rows,) and sorted: the number of each row's repeat
    prompts: NDArray[np.str_]  # str, (n_repeats,): the prompt of each repeat
    numbers: NDArray[np.int64]  # int64, (n_repeats,): which repeat of that prompt it is

    def values(self, means: NDArray[np.float64]) -> pl.DataFrame:
        """Give the mean of each repeat as a value; its item is the prompt, a slash, the repeat."""
        rows = pl.DataFrame({"prompt_id": self.prompts, "repeat": self.numbers, "value": means})
        return rows.with_columns(item=pl.format("{}/{}", "prompt_id", "repeat"))


def repeats_in(rows: pl.DataFrame) -> Repeats:
    """Number the repeats of rows in order of prompt_id and repeat."""
    keys = rows.select("prompt_id", "repeat")
    each = keys.unique(maintain_order=True)
    return Repeats(
        of_row=keys.to_struct().rle_id().to_numpy().astype(np.int64),
        prompts=np.array(each["prompt_id"].to_list(), np.str_),
        numbers=each["repeat"].to_numpy().astype(np.int64),
    )


def mean_over_repeats(
    values: NDArray[np.float64], repeat: NDArray[np.int64], repeats: Repeats, *, target: Target, confidence: float
) -> tuple[Interval, NDArray[np.float64]]:
    """Average values, (n,), over each repeat, then over repeats, then over prompts.

    Args:
        values: NaN is a value that is not known.
        repeat: int64, (n,): the number of the repeat that each belongs to.
        repeats: what the numbers stand for.
        target: what the interval speaks about.
        confidence: of the interval.

    Returns:
        The mean with its limits, `n` counting the values known, and the mean of each repeat, NaN where it has none.
    """
    known, count = np.isfinite(values), len(repeats.prompts)
    counts = np.bincount(repeat[known], minlength=count)
    sums = np.bincount(repeat[known], weights=values[known], minlength=count)
    means = np.divide(sums, counts, out=np.full(count, np.nan), where=counts > 0)
    seen = np.flatnonzero(counts)
    if not len(seen):
        return no_interval(target), means
    prompts, numbers = repeats.prompts[seen], repeats.numbers[seen]
    found = interval(means[seen], prompts=prompts, repeats=numbers, target=target, confidence=confidence)
    return replace(found, n=int(known.sum())), means


def equal_means(means: Sequence[Mean], *, n: int, confidence: float) -> Interval:
    """Average independent means, each weighing the same, as of countries; the variance is that of these alone.

    Degrees of freedom are after Welch and Satterthwaite.
    """
    if not means:
        return no_interval("these")
    value = float(np.mean([mean.value for mean in means]))
    total = math.fsum(mean.variance for mean in means)
    margin = total
    if total > 0:
        shares = [(mean.variance / total) ** 2 / mean.freedom for mean in means if mean.variance > 0]
        margin = half_width(Mean(value, total / len(means) ** 2, 1 / math.fsum(shares)), confidence=confidence)
    return Interval(value, value - margin, value + margin, n, "these")


def no_interval(target: Target) -> Interval:
    """Say that nothing is known."""
    return Interval(math.nan, math.nan, math.nan, 0, target)


def statistic_row(
    metric: str, *, model: str, benchmark: str, answer: Interval, params: Mapping[str, object], unit: str | None = None,
    **place: str | None,
) -> Row:  # fmt: skip
    """Write one score; a limit that is not known is null. The unit of a metric of ours is in the catalogue."""
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
        "unit": unit or CATALOG[metric].unit,
    }


def with_reason(params: dict[str, object], answer: Interval, reason: str) -> dict[str, object]:
    """Say in params why there is no interval, where there is none."""
    return {**params, "no_interval": reason} if math.isnan(answer.low) else params


def value_rows(place: Mapping[str, str | None], params: Mapping[str, object], values: pl.DataFrame) -> pl.DataFrame:
    """Write the values behind one score: item and value, prompt_id and repeat where there are; NaN becomes null.

    Args:
        place: the columns metric, model, benchmark, concept, country and group of the score; those it lacks are null.
        params: of the score.
        values: one row per value.
    """
    texts = {"concept": None, "country": None, "group": None, **place, "params": canonical_json(dict(params)).decode()}
    missing = {name: None for name in ("prompt_id", "repeat") if name not in values.columns}
    return values.with_columns(
        *(pl.lit(text, pl.String).alias(name) for name, text in {**texts, **missing}.items()),
        pl.col("value").cast(pl.Float64).fill_nan(None),
    ).select(pl.col(name).cast(dtype) for name, dtype in VALUES.schema.items())


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores with intervals, and what they are made of."""

    scores: pl.DataFrame  # conforms to SCORES, in the order of its key
    values: pl.DataFrame  # conforms to VALUES, in the order of its key; empty where no single items were scored
    left_out: Mapping[str, int]  # what did not enter a score, counted by reason


def scored(
    scores: Iterable[Row],
    values: Iterable[Row | pl.DataFrame] | pl.DataFrame = (),
    *,
    left_out: Mapping[str, int] | None = None,
) -> Scored:
    """Put rows and tables of rows into tables, in the order of their keys; a column that a row lacks is null.

    What was left out is named in the order of its reasons; those for which nothing was are not.
    """
    parts = [values] if isinstance(values, pl.DataFrame) else list(values)
    tables = [part.select(list(VALUES.schema)) for part in parts if isinstance(part, pl.DataFrame)]
    rows = pl.DataFrame([part for part in parts if not isinstance(part, pl.DataFrame)], schema=VALUES.schema)
    made = pl.DataFrame(list(scores), schema=SCORES.schema, orient="row").sort(SCORES.key, maintain_order=True)
    behind = pl.concat([rows, *tables]).sort(VALUES.key, maintain_order=True)
    check_ranges(behind)
    check_ranges(made)
    return Scored(made, behind, {reason: count for reason, count in sorted((left_out or {}).items()) if count})


ROUNDING = 1e-6  # By so much arithmetic in float32 may pass a bound


def check_ranges(table: pl.DataFrame) -> None:
    """Refuse a number that its metric cannot be; metrics of other packages are held to theirs elsewhere."""
    known = [CATALOG[name] for name in table["metric"].unique() if name in CATALOG]
    low, high = (
        pl.col("metric").replace_strict(ends, default=None, return_dtype=pl.Float64)
        for ends in ({each.name: each.low for each in known}, {each.name: each.high for each in known})
    )
    beyond = (pl.col("value") < low - ROUNDING) | (pl.col("value") > high + ROUNDING)
    outside = table.filter(pl.col("value").is_finite(), beyond)
    if outside.height:
        row = outside.row(0, named=True)
        metric = CATALOG[row["metric"]]
        raise UsageError(
            f"{metric.name} cannot be {row['value']:g}",
            where=f"item {row['item']!r} of {row['model']}" if "item" in row else f"the score of {row['model']}",
            expected=f"from {metric.low:g} to {metric.high:g}",
            found=f"{outside.height:,} such numbers",
            hint="What it is made of is on another scale, or stands in another column.",
        )
