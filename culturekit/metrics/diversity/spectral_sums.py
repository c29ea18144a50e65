"""Sums over eigenvalues that nobody computes: from the resolvent trace at some hundred points, to 13 digits.

Psi(t) is the sum of λ/(λ + t). Up to order 1.1 the sum of λ^q is an integral of Psi over t > 0; above, where that
integral loses digits, it is an integral over a curve around the spectrum. Both are sums at equal steps of a smooth
integrand that dies out on both sides, and converge geometrically.
"""

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["HIGHEST_ON_AXIS", "ImplicitSpectrum", "largest_eigenvalue", "power_sum", "tsallis_sums"]

HIGHEST_ON_AXIS = 1.1
"""Above this order the integral over t > 0 loses digits."""

STEP = 0.55
"""In log t: the error is exp(-2·pi²/STEP), or 3e-16."""

DIGITS = 38.0
"""How many factors of e make a term negligible."""

WIDEST_ANGLE = math.pi / 6


class ImplicitSpectrum(Protocol):
    """Eigenvalues that are known by what can be asked about them.

    Attributes:
        rank: how many are above 0.
        trace: their sum.
        least: a positive number of which none that is above 0 is far below.
        most: a number that none is above.
    """

    rank: int
    trace: float
    least: float
    most: float

    def resolvent(self, t: NDArray[Any]) -> NDArray[Any]:
        """Compute the sum of λ/(λ + t)."""
        ...

    def below(self, x: float) -> bool:
        """Tell whether all are below x."""
        ...


def tsallis_sums(spectrum: ImplicitSpectrum, orders: list[float]) -> dict[float, float]:
    """Compute the sum of (λ^q - λ)/(1 - q), at q = 1 the sum of -λ ln λ, for orders up to 1.1.

    As many eigenvalues of equal size and the same trace are taken off under the integral and added after it: then
    it converges fast on both sides for all these orders.
    """
    if not orders:
        return {}
    mean = spectrum.trace / spectrum.rank
    # Near t = 0 the integrand is as t^(1+q), far out as t^(q-2).
    start = math.log(spectrum.least) - DIGITS / (1 + min(orders))
    end = math.log(spectrum.most) + DIGITS / (2 - max(orders))
    t = np.exp(np.arange(start, end + STEP, STEP))
    difference = spectrum.resolvent(t) - spectrum.rank * mean / (mean + t)
    return {q: tsallis(q, spectrum.trace, mean, STEP * float(np.sum(t**q * difference))) for q in orders}


def tsallis(q: float, trace: float, mean: float, integral: float) -> float:
    """Add what was taken off; nothing here is divided by 1 - q."""
    e = 1 - q
    equal = -math.log(mean) if e == 0 else math.expm1(-e * math.log(mean)) / e
    return trace * equal + float(np.sinc(e)) * integral


def power_sum(spectrum: ImplicitSpectrum, q: float, *, largest: float) -> float:
    """Compute the sum of (λ/largest)^q for an order above 1: the residues of z^(q-1)·λ/(z - λ) inside a curve.

    In w = log(z/largest) the eigenvalues lie on the negative half line, again 2·pi·i above it and so on. The curve
    -4·log cosh(s - i·angle) keeps between them, the tighter the higher the order, so that z^q does not grow.
    """
    angle = min(WIDEST_ANGLE, math.sqrt(1 / q))
    step = 2 * math.pi * angle / (DIGITS - 2)
    reach = math.acosh(math.sqrt(math.exp(DIGITS / (2 * q)) + math.sin(angle) ** 2))
    s = np.arange(0.5 * step, reach + step, step) - 1j * angle
    w = -4 * np.log(np.cosh(s))
    z = largest * np.exp(w)
    # λ/(z - λ) is -λ/(λ + t) at t = -z, and dw/ds is -4·tanh(s).
    terms = np.exp(q * w) * spectrum.resolvent(-z) * 4 * np.tanh(s)
    return float(step * np.sum(terms.imag) / math.pi)


def largest_eigenvalue(spectrum: ImplicitSpectrum) -> float:
    """Find the largest eigenvalue by bisection."""
    low, high = 0.0, spectrum.most * (1 + 1e-12)
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return middle
        if spectrum.below(middle):
            high = middle
        else:
            low = middle
