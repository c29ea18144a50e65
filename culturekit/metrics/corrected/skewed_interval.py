"""An interval around an estimate that scatters more to one side than to the other."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["skewed_limits"]

STRONGEST = 1.2
"""Beyond this skewness the correction, a cubic in it, would say more than a few hundred draws know."""


def skewed_limits(
    value: float, draws: NDArray[np.float64], *, freedom: float, confidence: float, lowest: float, highest: float
) -> tuple[float, float]:
    """Give the limits of a t interval corrected for skewness, kept within what is possible.

    A t interval misses more often on one side when the estimate is skewed, for then its standard error goes
    up and down with it. Hall's cubic (1992) takes that out: T becomes T + g T²/3 + g² T³/27 + g/6, which is
    monotone, so that its inverse bounds the value.

    Args:
        value: the estimate.
        draws: how the estimate scatters, float64 (n,), around any centre.
        freedom: degrees of freedom behind the scatter.
        confidence: how often the limits are to hold the truth.
        lowest: no value is below.
        highest: no value is above.
    """
    from scipy.special import stdtrit

    error = float(draws.std(ddof=1))
    if error == 0:
        return value, value
    centred = draws - draws.mean()
    skewness = float(np.clip((centred**3).mean() / (centred**2).mean() ** 1.5, -STRONGEST, STRONGEST))
    t = float(stdtrit(freedom, (1 + confidence) / 2))
    low, high = value - error * untransformed(t, skewness), value - error * untransformed(-t, skewness)
    return max(lowest, low), min(highest, high)


def untransformed(point: float, skewness: float) -> float:
    """Invert Hall's cubic at a point."""
    if abs(skewness) < 1e-3:
        return point
    return 3 / skewness * (math.cbrt(1 + skewness * (point - skewness / 6)) - 1)
