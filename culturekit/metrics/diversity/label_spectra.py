"""The effective number of items behind classes of labels, by whichever way is exact and fast for them."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.diversity.deflation import Deflated, deflate
from culturekit.metrics.diversity.label_classes import LabelClasses
from culturekit.metrics.diversity.label_kernels import CrossingKernel, NestedKernel, nests
from culturekit.metrics.diversity.spectra import effective_number

__all__ = ["effective_numbers", "largest_eigenvalue", "power_sum", "tsallis_sums"]

FEW_NESTED = 48
"""Up to so many classes after deflation their matrix is solved at once, where labels nest."""

FEW_CROSSING = 150
"""The same where they do not: sums over such spectra cost more."""

HIGHEST_ON_AXIS = 1.1
"""Above this order the integral over t > 0 loses digits."""

STEP = 0.55
"""In log t: the error is exp(-2·pi²/STEP), or 3e-16."""

DIGITS = 38.0
"""How many factors of e make a term negligible."""

WIDEST_ANGLE = math.pi / 6


class ImplicitSpectrum(Protocol):
    """Eigenvalues that nobody computes: their sums come from the resolvent trace at some hundred points, to 13 digits.

    Psi(t) is the sum of λ/(λ + t). Up to order 1.1 the sum of λ^q is an integral of Psi over t > 0; above, where that
    integral loses digits, it is an integral over a curve around the spectrum. Both are sums at equal steps of a smooth
    integrand that dies out on both sides, and converge geometrically.

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


def effective_numbers(classes: LabelClasses, weights: Sequence[float], orders: Sequence[float]) -> list[float]:
    """Compute the Vendi score for several orders.

    Args:
        classes: of the levels that count, coarse levels first.
        weights: of these levels, above 0; they are scaled to sum to 1.
        orders: each above 0; infinity is allowed.
    """
    total = sum(weights)
    exact = tuple(weight / total for weight in weights)
    if len(exact) == 1:
        sizes, times = np.unique(classes.counts, return_counts=True)
        return [float(effective_number(sizes / classes.items, q=q, times=times)) for q in orders]
    answers = {2.0: score_of_order_two(classes, exact)} if 2.0 in orders else {}
    others = sorted({float(q) for q in orders} - {2.0})
    if others:
        answers |= dict(zip(others, by_spectrum(deflate(classes, exact), others), strict=True))
    return [min(max(answers[float(q)], 1.0), float(classes.items)) for q in orders]


def score_of_order_two(classes: LabelClasses, weights: Sequence[float]) -> float:
    """Compute 1 / (sum of λ²) in closed form: the sum of k(i, j)² over pairs is one of squared shares of labels."""
    total = 0.0
    for one, weight in enumerate(weights):
        for other in range(one, len(weights)):
            shares = classes.on([one] if one == other else [one, other]).counts / classes.items
            total += (1 if one == other else 2) * weight * weights[other] * float(shares @ shares)
    return 1 / total


def by_spectrum(kernel: Deflated, orders: Sequence[float]) -> list[float]:
    """Compute the scores from eigenvalues where they are few, and else from sums over them."""
    nested = nests(kernel)
    if len(kernel.mass) <= (FEW_NESTED if nested else FEW_CROSSING):
        rest, times = kernel.eigenvalues()
        return [float(effective_number(rest, q=q, times=times)) for q in orders]
    return from_sums(kernel, NestedKernel(kernel) if nested else CrossingKernel(kernel), orders)


def from_sums(kernel: Deflated, implicit: ImplicitSpectrum, orders: Sequence[float]) -> list[float]:
    """Compute the scores from sums over the implicit eigenvalues and from those that deflation found."""
    low = tsallis_sums(implicit, [q for q in orders if q <= HIGHEST_ON_AXIS])
    found = [math.exp(entropy_from_tsallis(low[q] + known_tsallis(kernel, q), q)) for q in low]
    high = [q for q in orders if q > HIGHEST_ON_AXIS]
    top = max(largest_eigenvalue(implicit), float(kernel.known.max(initial=0))) if high else 0.0
    for q in high:
        if math.isinf(q):
            found.append(1 / top)
            continue
        known = float(kernel.times @ (kernel.known / top) ** q)
        total = math.log(known + power_sum(implicit, q, largest=top))
        found.append(math.exp((q * math.log(top) + total) / (1 - q)))
    return found


def known_tsallis(kernel: Deflated, q: float) -> float:
    """Sum (λ^q - λ)/(1 - q) over the eigenvalues that deflation found."""
    logs = np.log(kernel.known)
    parts = -logs if q == 1 else np.expm1((q - 1) * logs) / (1 - q)
    return float(kernel.times @ (kernel.known * parts))


def entropy_from_tsallis(tsallis: float, q: float) -> float:
    """Give the Rényi entropy that belongs to Tsallis's, both of order q."""
    return tsallis if q == 1 else math.log1p((1 - q) * tsallis) / (1 - q)


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
