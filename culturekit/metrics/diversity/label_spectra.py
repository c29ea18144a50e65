"""The effective number of items behind classes of labels, by whichever way is exact and fast for them."""

import math
from collections.abc import Sequence

import numpy as np

from culturekit.metrics.diversity.crossing_kernel import CrossingKernel
from culturekit.metrics.diversity.deflation import Deflated, deflate
from culturekit.metrics.diversity.label_classes import LabelClasses
from culturekit.metrics.diversity.nested_kernel import NestedKernel, nests
from culturekit.metrics.diversity.spectra import effective_number
from culturekit.metrics.diversity.spectral_sums import (
    HIGHEST_ON_AXIS,
    ImplicitSpectrum,
    largest_eigenvalue,
    power_sum,
    tsallis_sums,
)

__all__ = ["effective_numbers"]

FEW_NESTED = 48
"""Up to so many classes after deflation their matrix is solved at once, where labels nest."""

FEW_CROSSING = 150
"""The same where they do not: sums over such spectra cost more."""


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
