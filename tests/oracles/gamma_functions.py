"""The logarithm of the gamma function and its slopes, by Stirling's series."""

import numpy as np

from culturekit.core.arrays import Array

HALF_LOG_TURN = 0.5 * float(np.log(2 * np.pi))


def lgamma(at: Array) -> Array:
    """Give the logarithm of the gamma function: Stirling's series, ten steps further up."""
    far, ends = at + 10, at * (at + 9)
    product = ends * (ends + 8) * (ends + 14) * (ends + 18) * (ends + 20)  # of at, at + 1, ... at + 9, two by two
    once = 1 / far
    twice = once * once
    series = once * (1 / 12 - twice * (1 / 360 - twice * (1 / 1260 - twice / 1680)))
    return np.asarray((far - 0.5) * np.log(far) - far + HALF_LOG_TURN + series - np.log(product))


def digamma(at: Array) -> Array:
    """Give the slope of `lgamma`."""
    far = at + 10
    series = 1 / (12 * far**2) - 1 / (120 * far**4) + 1 / (252 * far**6) - 1 / (240 * far**8)
    return np.asarray(np.log(far) - 1 / (2 * far) - series - sum(1 / (at + step) for step in range(10)))


def trigamma(at: Array) -> Array:
    """Give the slope of the digamma function as closely as the correction does: four steps up, four terms."""
    far = at + 4
    series = 1 / far + 1 / (2 * far**2) + 1 / (6 * far**3) - 1 / (30 * far**5)
    return np.asarray(series + sum(1 / (at + step) ** 2 for step in range(4)))
