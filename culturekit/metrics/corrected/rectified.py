"""Corrected diversity: that of imputed images, put right by audited images that the imputation did not see.

The imputation says how diverse batches are; where it errs it errs in the shares, and by how much is seen on the images
that people looked at, to first order. Audited images are parted in three, and each part is held against an imputation
from the other two.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity
from culturekit.metrics.corrected.imputed_prompts import Findings, Imputed, impute
from culturekit.metrics.statistics.intervals import Interval

__all__ = ["rectified"]

FOLDS = 3
STEP = 1e-6
ROWS = 6_000
"""Rows of counts whose diversity is computed per fold: with many prompts fewer of the draws."""

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


def rectified(
    mapped: Counts,
    found: Findings,
    parents: Counts,
    none: int,
    diversity: ExpectedDiversity,
    *,
    confidence: float,
    rng: np.random.Generator,
) -> Interval:
    """Estimate the mean diversity of prompts."""
    part = np.arange(len(found.prompt)) % FOLDS
    part = part[rng.permutation(len(part))]
    imputed = [impute(mapped, found.of(part != fold), parents, none, rng=rng) for fold in range(FOLDS)]
    draws = np.stack([drawn_values(one, diversity, rng) for one in imputed])
    shift, error = shift_of(mapped, found, part, imputed, [slopes_of(diversity, one.shares) for one in imputed])
    value = float(draws.mean()) + shift
    away = (draws - draws.mean(axis=1, keepdims=True)).ravel()
    spread = float(away.std())
    wider = 1.05 * max(1.0, error / spread) if spread > 0 else 0.0
    below, above = np.quantile(away, [(1 - confidence) / 2, (1 + confidence) / 2])
    low, high = value + wider * below, value + wider * above
    lowest = 1 / diversity.size
    if ((found.shown > 0.5).any(axis=0)).sum() == 1:
        low = lowest
    value = float(np.clip(value, lowest, 1.0))
    return Interval(
        value, float(np.clip(low, lowest, value)), float(np.clip(high, value, 1.0)), len(found.prompt), "these"
    )


def drawn_values(imputed: Imputed, diversity: ExpectedDiversity, rng: np.random.Generator) -> Array:
    """Give the mean diversity of prompts for draws of what their images show."""
    enough = imputed.counts.sum(axis=2)[0] >= diversity.size
    counts = imputed.counts[:, enough]
    kept, prompts, labels = counts.shape
    if kept * prompts > ROWS:
        counts = counts[np.linspace(0, kept - 1, max(ROWS // prompts, 30)).round().astype(np.int64)]
    values = diversity.of_images(counts.reshape(-1, labels))
    return np.asarray(values.reshape(counts.shape[:2]).mean(axis=1))


def slopes_of(diversity: ExpectedDiversity, shares: Array) -> Array:
    """Give how the diversity of each prompt changes with the share of each label, 0 on average over its images."""
    now = diversity(shares)
    slopes = np.stack([diversity(shares + STEP * one) - now for one in np.eye(shares.shape[1])], axis=1) / STEP
    return np.asarray(slopes - (slopes * shares).sum(axis=1, keepdims=True))


def shift_of(
    mapped: Counts, found: Findings, part: Counts, imputed: Sequence[Imputed], slopes: Sequence[Array]
) -> tuple[float, float]:
    """Give by how much the imputed diversity is too low to first order, and the standard error of that.

    The slopes for an image come from the imputation that did not see it: what is seen is more frequent there, and
    the slope of what is frequent is low.
    """
    images = mapped.sum(axis=1)
    total, n = int(images.sum()), len(part)
    weight = total / (len(images) * images)  # of an image: prompts count alike
    y, p = np.empty(n), np.empty(n)
    everywhere = squares = already = unseen = 0.0
    for fold, (one, slope) in enumerate(zip(imputed, slopes, strict=True)):
        slope = weight[:, None] * slope
        held = part == fold
        size = float(held.mean())
        expected = np.einsum("kml,kl->km", one.chances, slope)
        y[held] = (found.shown[held] * slope[found.prompt[held]]).sum(axis=1)
        p[held] = expected[found.prompt[held], found.mapped[held]]
        everywhere += size * float((expected * mapped).sum()) / total
        squares += size * float((expected**2 * mapped).sum()) / total
        already += size * float((slope * one.counts.mean(axis=0)).sum()) / total
        unseen += size * float(images @ slope.max(axis=1)) / total
    spread = float(p.var())
    trust = float(np.clip(np.cov(y, p)[0, 1] / spread, 0.0, 1.0)) if spread > 1e-15 else 0.0
    shift = float((y - trust * p).mean()) + trust * everywhere - already
    variance = float((y - trust * p).var(ddof=1)) / n + trust**2 * max(squares - everywhere**2, 0.0) / total
    return shift, (variance + 0.5 * (unseen / n) ** 2) ** 0.5
