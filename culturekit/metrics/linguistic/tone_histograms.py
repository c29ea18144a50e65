"""How evenly pictures spread over the ten tones of the Monk scale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.arguments import argument_error, finite_vector
from culturekit.metrics.linguistic.monk_scale import MONK_TONES

__all__ = ["Spread", "spread_of", "tone_histogram", "tone_spread"]

TONES = len(MONK_TONES)

SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Spread:
    """How far numbers lie from their mean.

    Attributes:
        std: the population standard deviation.
        mad: the mean absolute deviation.
    """

    std: float
    mad: float


def tone_histogram(indices: Sequence[int] | NDArray[np.integer]) -> NDArray[np.float64]:
    """Give the share of pictures with each tone, float64 (10,), summing to 1.

    Args:
        indices: int, (n_images,): tones from 1 to 10; pictures without skin have none and are left out before.
    """
    tones = np.asarray(indices)
    if tones.ndim != 1 or len(tones) == 0 or tones.dtype.kind not in "iu":
        raise argument_error("indices", "a sequence of at least one whole number", indices)
    if tones.min() < 1 or tones.max() > TONES:
        raise argument_error("indices", f"tones from 1 to {TONES}", [int(tones.min()), int(tones.max())])
    return np.bincount(tones.astype(np.int64) - 1, minlength=TONES) / len(tones)


def tone_spread(histogram: ArrayLike) -> Spread:
    """Give STD and MAD over the ten bins of a histogram: 0 and 0 when even, 0.3 and 0.18 with one tone only.

    Both are population values. The paper's table prints the row of a single tone with the two swapped.

    Args:
        histogram: float, (10,): shares of at least 0 that sum to 1, lightest tone first.

    Raises:
        UsageError: the histogram breaks its rule.
    """
    shares = finite_vector("histogram", histogram, length=TONES)
    if shares.min() < 0 or abs(shares.sum() - 1) > SUM_TOLERANCE:
        raise argument_error("histogram", f"{TONES} shares of at least 0 that sum to 1", shares.tolist())
    return spread_of(shares)


def spread_of(values: NDArray[np.float64]) -> Spread:
    """Give the population standard deviation and the mean absolute deviation of numbers, (n,)."""
    # Sorted, so that it does not matter which number belongs to whom; equal numbers have no spread at all.
    ordered = np.sort(values)
    shifts = ordered - ordered[0]
    shifts -= shifts.mean()
    return Spread(float(np.sqrt(np.mean(shifts**2))), float(np.abs(shifts).mean()))
