"""Shares of images by what people saw in an even draw of them: alone, and with the mapping to help."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["AuditedShare", "audited_rate", "audited_share"]

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AuditedShare:
    """A share of images with its limits."""

    value: float
    low: float
    high: float


def audited_rate(parts: Sequence[Values], sizes: Sequence[int], *, confidence: float) -> AuditedShare:
    """Estimate a share of all images from what was seen on some of each part.

    Each part has Wilson's interval; their distances, weighed by the images of the parts, add in squares.

    Args:
        parts: for each part float64 (n_seen,): 1 where it is so, 0 where it is not, or between where raters differ.
        sizes: how many images each part has.
        confidence: of the interval.
    """
    weights = [size / sum(sizes) for size in sizes]
    limits = [wilson(float(part.mean()), len(part), confidence) for part in parts]
    value = math.fsum(weight * float(part.mean()) for weight, part in zip(weights, parts, strict=True))
    below = math.hypot(*(w * (float(p.mean()) - low) for w, p, (low, _) in zip(weights, parts, limits, strict=True)))
    above = math.hypot(*(w * (high - float(p.mean())) for w, p, (_, high) in zip(weights, parts, limits, strict=True)))
    return AuditedShare(value, max(value - below, 0.0), min(value + above, 1.0))


def wilson(share: float, trials: int, confidence: float) -> tuple[float, float]:
    """Give Wilson's limits of a share of independent trials."""
    from scipy.special import ndtri

    z = float(ndtri((1 + confidence) / 2))
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    return min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share)


def audited_share(
    said: Sequence[Values],
    seen: Sequence[Values],
    everywhere: Sequence[float],
    sizes: Sequence[int],
    *,
    confidence: float,
) -> AuditedShare:
    """Estimate the share of images that show something, by what people said, helped by what was mapped to it.

    The mapping counts as far as it foretells what people say (PPI++), so that it never makes the share less sure than
    people alone. An audit without a single error could have missed one: one error more is in the interval.

    Args:
        said: for each part float64 (n_seen,): 1 where people said so.
        seen: for each part float64 (n_seen,): 1 where the same images are mapped so.
        everywhere: the share of all images of each part that are mapped so.
        sizes: how many images each part has.
        confidence: of the interval.
    """
    from scipy.special import ndtri

    weights = [size / sum(sizes) for size in sizes]
    y, p = np.concatenate(said), np.concatenate(seen)
    spread = float(p.var())
    trust = float(np.clip(np.cov(y, p, ddof=0)[0, 1] / spread, 0.0, 1.0)) if spread > 0 else 0.0
    value, variance, one = 0.0, 0.0, 0.0
    for weight, answers, mapped, share in zip(weights, said, seen, everywhere, strict=True):
        rest = answers - trust * mapped
        value += weight * (float(rest.mean()) + trust * share)
        variance += weight**2 * float(rest.var(ddof=1)) / len(rest)
        one = max(one, weight / len(rest))
    margin = float(ndtri((1 + confidence) / 2)) * math.sqrt(variance + one**2)
    value = min(max(value, 0.0), 1.0)
    return AuditedShare(value, max(value - margin, 0.0), min(value + margin, 1.0))
