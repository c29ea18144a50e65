"""P values of several comparisons, corrected for their number."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.arguments import argument_error, check_choice

__all__ = ["CORRECTIONS", "benjamini_hochberg", "bonferroni", "corrected", "holm"]

CORRECTIONS = ("holm", "benjamini-hochberg")


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Correct p values so that all of them together err as often as one would (Holm 1979).

    Args:
        p: float, (n,): NaN is a comparison that could not be made; it stays NaN and does not count.

    Returns:
        float64, (n,), in the order given.
    """
    values = p_values(p)
    answer = np.full(values.shape, np.nan)
    known = np.flatnonzero(np.isfinite(values))
    order = known[np.argsort(values[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    answer[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return answer


def benjamini_hochberg(p: ArrayLike) -> NDArray[np.float64]:
    """Correct p values so that the expected share of false ones among those called different stays small.

    Args:
        p: float, (n,): NaN is a comparison that could not be made; it stays NaN and does not count.

    Returns:
        float64, (n,), in the order given.
    """
    from scipy.stats import false_discovery_control

    values = p_values(p)
    known = np.isfinite(values)
    answer = np.full(values.shape, np.nan)
    if known.any():
        answer[known] = false_discovery_control(values[known], method="bh")
    return answer


def bonferroni(p: float, comparisons: int) -> float:
    """Correct one p value for comparisons whose p values are not known; NaN stays NaN."""
    return p if math.isnan(p) else min(1.0, p * comparisons)


def corrected(p: ArrayLike, *, correction: str) -> NDArray[np.float64]:
    """Correct p values by the name of the method."""
    check_choice("correction", correction, CORRECTIONS)
    return holm(p) if correction == "holm" else benjamini_hochberg(p)


def p_values(p: ArrayLike) -> NDArray[np.float64]:
    """Read p values, (n,), each in [0, 1] or NaN."""
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or bool(((values < 0) | (values > 1)).any()):
        raise argument_error("p", "a sequence of numbers in [0, 1], or NaN where there is none", p)
    return values
