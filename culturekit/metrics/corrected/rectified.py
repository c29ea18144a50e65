"""Corrected diversity: that of imputed images, put right by audited images that the imputation did not see.

The imputation says how diverse batches are; where it errs it errs in the shares, and by how much is seen on the images
that people looked at, to first order. Audited images are parted in three, and each part is held against an imputation
from the other two.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity
from culturekit.metrics.corrected.imputed_prompts import Findings, Imputed, impute
from culturekit.metrics.corrected.raters import RatedInterval

__all__ = ["Parted", "parted", "rectified"]

FOLDS = 3
STEP = 1e-5
CAUTION = 1.05
"""By how much intervals are wider than draws and error tell: both are estimates."""

FEWEST_BEYOND = 2
"""Draws beyond a limit. Where fewer lie there the limit is further out, as of a normal law: 300 draws tell nothing of
what holds in 999 cases of 1,000."""

ROWS = 6_000
"""Rows of counts whose diversity is computed per fold: with many prompts fewer of the draws."""

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Parted:
    """What is imputed without each part of the audited images: all kernels that look at the same labels share it.

    Attributes:
        part: int64, (n,): the part of each audited image.
        imputed: from the other parts, for each part.
    """

    part: Counts
    imputed: Sequence[Imputed]


def parted(mapped: Counts, found: Findings, parents: Counts, none: int, *, rng: np.random.Generator) -> Parted:
    """Part the audited images, and impute what all images show without each part.

    Args:
        mapped: int64, (n_prompts, n_labels): images by prompt and mapped label.
        found: the audited ones among them.
        parents: int64, (n_labels,): the continent of each label.
        none: the label of pictures that show no artifact.
        rng: draws.
    """
    part = np.arange(len(found.prompt)) % FOLDS
    part = part[rng.permutation(len(part))]
    return Parted(part, [impute(mapped, found.of(part != fold), parents, none, rng=rng) for fold in range(FOLDS)])


def rectified(
    mapped: Counts,
    found: Findings,
    told: Parted,
    diversity: ExpectedDiversity,
    *,
    confidence: float,
    rng: np.random.Generator,
) -> RatedInterval:
    """Estimate the mean diversity of the prompts that have images for a batch.

    Args:
        mapped: int64, (n_prompts, n_labels): images by prompt and mapped label.
        found: the audited ones among them.
        told: what was imputed.
        diversity: the mean diversity of batches, as a function of shares or of images.
        confidence: how often the limits are to hold the truth.
        rng: draws.

    Raises:
        UsageError: no prompt has images for a batch.
    """
    if not (mapped.sum(axis=1) >= diversity.size).any():
        raise UsageError("no prompt has as many images as a batch", expected=f"{diversity.size} images of some prompt")
    part, imputed = told.part, told.imputed
    counts = [some_counts(one, diversity.size) for one in imputed]
    draws = np.stack([drawn_values(one, diversity) for one in counts])
    images = images_scatter(mapped, [one.drawn for one in imputed], diversity, rng)
    slopes = [slopes_of(diversity, one.shares, mapped) for one in imputed]
    shift, rest, alone, erring = shift_of(mapped, found, part, imputed, slopes)
    unseen = beyond(draws, counts, np.mean(slopes, axis=0))
    value = float(draws.mean()) + shift
    away = draws - draws.mean(axis=1, keepdims=True)
    lowest, one = 1 / diversity.size, (found.shown > 0.5).any(axis=0).sum() == 1  # people saw one label and no other
    within = float(np.clip(value, lowest, 1.0))
    limits: list[float] = []
    for raters in (erring, 0.0):
        error, most = (rest + images + unseen + raters) ** 0.5, (alone + unseen + raters) ** 0.5
        below, above = distances(away.ravel(), error, most, confidence)
        low = lowest if one else float(np.clip(value + below, lowest, within))
        limits += [low, float(np.clip(value + above, within, 1.0))]
    low, high, *sure = limits
    return RatedInterval(within, low, high, len(found.prompt), "these", *sure)


def distances(away: Array, error: float, alone: float, confidence: float) -> tuple[float, float]:
    """Give how far the limits lie below and above the value: as the draws scatter, and no less than the error tells.

    Draws that hardly scatter say little about the sides: then both are those of the error. Limits lie no further apart
    than those that the labels of audited images alone give: `alone` is the standard error of these.
    """
    from scipy.special import ndtri

    spread, margin = float(away.std()), float(ndtri((1 + confidence) / 2))
    if 3 * spread < error:
        below, above = -margin * error, margin * error
    else:
        wider = CAUTION * max(1.0, error / spread) if spread > 0 else 0.0
        tail = max((1 - confidence) / 2, FEWEST_BEYOND / len(away))
        below, above = wider * margin / float(ndtri(1 - tail)) * np.quantile(away, [tail, 1 - tail])
    narrower = min(1.0, 2 * margin * alone / (above - below)) if above > below else 1.0
    return narrower * float(below), narrower * float(above)


def some_counts(imputed: Imputed, size: int) -> Counts:
    """Take of the draws as many as the diversity is computed of, int64 (some, n_prompts, n_labels)."""
    kept, prompts = len(imputed.counts), int((imputed.counts[0].sum(axis=1) >= size).sum())
    some = min(kept, max(ROWS // prompts, 30))
    return imputed.counts[np.linspace(0, kept - 1, some).round().astype(np.int64)]


def drawn_values(counts: Counts, diversity: ExpectedDiversity) -> Array:
    """Give the mean diversity of prompts for draws of what their images show."""
    counts = counts[:, counts[0].sum(axis=1) >= diversity.size]
    values = diversity.of_images(counts.reshape(-1, counts.shape[2]))
    return np.asarray(values.reshape(counts.shape[:2]).mean(axis=1))


def beyond(draws: Array, counts: Sequence[Counts], slope: Array) -> float:
    """Give the variance of all draws that the slope does not explain.

    What people saw puts right how often labels are shown; how alike the images of a prompt are, only the draws tell,
    and they differ from one imputation to the next.
    """
    explained = [np.einsum("dkl,kl->d", one, slope) / one[0].sum() for one in counts]
    return float((draws - explained).var())


def images_scatter(
    mapped: Counts, shares: Sequence[Array], diversity: ExpectedDiversity, rng: np.random.Generator
) -> float:
    """Give the variance of the diversity of images around that of the shares they come from, prompts taken together."""
    images = mapped.sum(axis=1)
    enough = images >= diversity.size
    squares = []
    for drawn in shares:
        again = rng.multinomial(images[enough], drawn[:, enough] / drawn[:, enough].sum(axis=2, keepdims=True))
        rows = (-1, mapped.shape[1])
        away = diversity.of_images(again.reshape(rows)) - diversity(drawn[:, enough].reshape(rows))
        squares.append(float((away**2).mean()))
    return float(np.mean(squares)) / int(enough.sum())


def slopes_of(diversity: ExpectedDiversity, shares: Array, mapped: Counts) -> Array:
    """Give how the score changes with what an image shows, float64 (n_prompts, n_labels), in parts of all images.

    On average over a prompt it does not. Prompts count alike, and those without images for a batch nothing.
    """
    images = mapped.sum(axis=1)
    enough = images >= diversity.size
    weight = enough * images.sum() / (enough.sum() * images)
    steps = np.vstack([np.zeros(shares.shape[1]), STEP * np.eye(shares.shape[1])])
    values = diversity((shares[:, None] + steps).reshape(-1, shares.shape[1])).reshape(len(shares), -1)
    slopes = (values[:, 1:] - values[:, :1]) / STEP
    return np.asarray(weight[:, None] * (slopes - (slopes * shares).sum(axis=1, keepdims=True)))


def shift_of(
    mapped: Counts, found: Findings, part: Counts, imputed: Sequence[Imputed], slopes: Sequence[Array]
) -> tuple[float, float, float, float]:
    """Give by how much the imputed diversity is too low to first order, and the variance of that for these images.

    The third is the variance that labels alone have, which are held against no imputation; the last what raters' errors
    add to both.
    What people saw is held against what was imputed for the same images and, as far as that is not trusted, for all
    images that the imputation did not see. The slopes come from the imputation that did not see the image: what is
    seen is more frequent there, and the slope of what is frequent is low.
    """
    total, n = int(mapped.sum()), len(part)
    y, p, left, taken, even = (np.empty(n) for _ in range(5))
    everywhere, unseen = np.empty(n), 0.0
    for fold, (one, slope) in enumerate(zip(imputed, slopes, strict=True)):
        held = part == fold
        hidden = mapped.copy()
        np.subtract.at(hidden, (found.prompt[~held], found.mapped[~held]), 1)
        expected = np.einsum("kml,kl->km", one.chances, slope)
        here = slope[found.prompt[held]]
        y[held] = here[np.arange(len(here)), found.shown[held].argmax(axis=1)]
        taken[held], even[held] = (found.shown[held] * here).sum(axis=1), here.mean(axis=1)
        p[held] = expected[found.prompt[held], found.mapped[held]]
        left[held] = hidden.sum() / total
        everywhere[held] = (expected * hidden).sum() / hidden.sum()
        unseen += float(held.mean()) * float(mapped.sum(axis=1) @ slope.max(axis=1)) / total
    y, erring = without_errors(y, even, found)
    spread = float(p.var())
    trust = float(np.clip(np.cov(y, p)[0, 1] / spread, 0.0, 1.0)) if spread > 1e-15 else 0.0
    shift = float((left * (y - trust * p - (1 - trust) * everywhere) + (1 - left) * (y - taken)).mean())
    variance = float((y - trust * p).var(ddof=1)) * (1 / n - 1 / total)
    missed = 0.5 * (unseen / n) ** 2  # what one label that nobody met would add
    return shift, variance + missed, float(y.var(ddof=1)) / n + missed, erring


def without_errors(y: Array, even: Array, found: Findings) -> tuple[Array, float]:
    """Take out of what people saw what their errors add, and give the variance that is left of those.

    Wrong answers fall between as often as labels occur, which changes no share, and evenly on all labels, which adds
    `even`: half of that is taken out. It errs as far as the half and, wherever wrong answers fall, by what is not known
    of how often people are right.
    """
    wrong = 1 - found.right
    seen, most = float(y.mean()), float(even.mean())
    error = wrong * most / 2 / found.right, max(abs(seen), abs(seen - most)) / found.right**2 * found.doubt
    return (y - wrong * even / 2) / found.right, error[0] ** 2 + error[1] ** 2
