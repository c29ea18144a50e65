"""All pairs of models on the same prompts, with p values corrected for their number."""

import itertools
from typing import TYPE_CHECKING

import numpy as np

from culturekit.defaults import CONFIDENCE
from culturekit.errors import UsageError
from culturekit.metrics.statistics.comparisons import Comparison, compare
from culturekit.metrics.statistics.corrections import corrected
from culturekit.metrics.statistics.intervals import Target

if TYPE_CHECKING:
    import polars as pl

__all__ = ["compare_models"]

NEEDED = ("model", "prompt_id", "value")


def compare_models(
    values: "pl.DataFrame",
    *,
    paired: bool = True,
    target: Target = "population",
    correction: str = "holm",
    confidence: float = CONFIDENCE,
    resamples: int = 9999,
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
