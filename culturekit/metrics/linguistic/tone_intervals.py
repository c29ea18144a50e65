"""How certain the spread of a histogram of tones is."""

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.metrics.arguments import argument_error, check_choice
from culturekit.metrics.linguistic.tone_histograms import spread_of
from culturekit.metrics.statistics.clustering import Keys, check_confidence
from culturekit.metrics.statistics.intervals import Interval

__all__ = ["MOST", "SpreadKind", "tone_spread_interval"]

SpreadKind: TypeAlias = Literal["std", "mad"]

MOST = {"std": 0.3, "mad": 0.18}
"""What a single tone gives."""


def tone_spread_interval(
    weights: ArrayLike, clusters: Keys, *, kind: SpreadKind, confidence: float = CONFIDENCE
) -> Interval:
    """Give the STD or MAD of the mean histogram of pictures, with a jackknife interval over clusters.

    Few pictures cannot fill ten tones, so the spread is too high on average: a bootstrap, which repeats pictures, lies
    higher still and often does not hold even the value it is about. Here clusters are left out one at a time. Limits
    reach from the lower end of two t intervals, around the value and around it less its jackknife bias, to the
    higher. In simulation they hold the truth 93 to 98 times in a hundred; where the truth is exactly even, 7 in 10.

    Args:
        weights: float, (n, tones): the weights of each picture over the tones; each row sums to 1.
        clusters: (n,): the prompt of each picture.
        kind: `std` or `mad`.
        confidence: how often such intervals are to hold the spread of pictures of prompts like these.

    Raises:
        UsageError: an argument breaks its rule.
    """
    from scipy.special import stdtrit

    check_confidence(confidence)
    check_choice("kind", kind, tuple(MOST))
    rows = np.asarray(weights, dtype=np.float64)
    if rows.ndim != 2 or rows.size == 0 or not np.isfinite(rows).all():
        raise argument_error("weights", "finite numbers, (n, tones)", f"shape {rows.shape}")
    keys = np.asarray(clusters)
    if keys.shape != (len(rows),):
        raise argument_error("clusters", f"one per row, of length {len(rows)}", f"shape {keys.shape}")
    names, codes = np.unique(keys, return_inverse=True)
    sums = np.stack([np.bincount(codes, weights=column) for column in rows.T], axis=1)
    sizes = np.bincount(codes).astype(np.float64)
    value = spread(sums.sum(axis=0) / len(rows), kind)
    number = len(names)
    if number < 2:
        return Interval(value, np.nan, np.nan, len(rows), "population")
    without = [spread(rest, kind) for rest in (sums.sum(axis=0) - sums) / (len(rows) - sizes)[:, None]]
    shifts = np.sort(without) - np.mean(np.sort(without))
    margin = float(stdtrit(number - 1, (1 + confidence) / 2)) * np.sqrt((number - 1) / number * (shifts**2).sum())
    corrected = number * value - (number - 1) * float(np.mean(np.sort(without)))
    low, high = min(value, corrected) - margin, max(value, corrected) + margin
    return Interval(value, max(0.0, float(low)), min(MOST[kind], float(high)), len(rows), "population")


def spread(histogram: NDArray[np.float64], kind: SpreadKind) -> float:
    """Give one of the two spreads of a histogram."""
    both = spread_of(histogram)
    return both.std if kind == "std" else both.mad
