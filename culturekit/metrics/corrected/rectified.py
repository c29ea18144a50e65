"""Corrected diversity: that of imputed images, put right by audited images that the imputation did not see.

The imputation says how diverse batches are; where it errs it errs in the shares, and by how much is seen on the images
that people looked at, to first order. Audited images are parted in three, and each part is held against an imputation
from the other two.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.core.arrays import Array, Counts
from culturekit.core.errors import UsageError
from culturekit.metrics.corrected.audited_counts import RatedInterval
from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity
from culturekit.metrics.corrected.imputed_prompts import AuditedCounts, Findings, Imputed, impute

PAIRS = 100  # With so many pairs of audited images of a prompt, half of what they tell is believed

_TIMES = 100  # How often labels are drawn one by one

_INSIDE = 0.02
"""So much of the shares is what was imputed for the images left out: no step takes away more than there is."""


@dataclass(frozen=True, slots=True)
class Parted:
    """What is imputed without each part of the audited images: all kernels that look at the same labels share it."""

    part: Counts  # int64, (n,): the part of each audited image
    imputed: Imputed  # a chain for each part, from the other parts


@dataclass(frozen=True, slots=True)
class Bend:
    """What is looked at of a prompt of which some images were left out of an imputation."""

    chain: int  # the imputation
    hidden: float  # the share of the prompt's images that it did not see
    shares: Array  # float64, (n_labels,): what all images show, as imputed
    beyond: Array  # float64, (n, n_labels): what the images left out show beyond what was imputed for them
    drawn: Counts  # int64, (kept, n_labels): images by what they show, as imputed
    alone: Counts  # int64, (TIMES, n_labels): each label drawn by itself

    def steps(self) -> Array:
        """Give shares on three places of a line for all images left out together, and for each."""
        lines = np.vstack([self.beyond.mean(axis=0), self.beyond / len(self.beyond)])
        return np.asarray(self.shares + _INSIDE / 2 * np.arange(3)[:, None, None] * lines).reshape(-1, len(self.shares))

    @property
    def trust(self) -> float:
        """How far the pairs of images are believed."""
        pairs = len(self.beyond) * (len(self.beyond) - 1)
        return pairs / (pairs + PAIRS)

    def added(self, steps: Array, drawn: Array, alone: Array) -> float:
        """Say what is to be added, from the diversity of the steps, of what was imputed, and of labels drawn alone."""
        first, second, third = steps.reshape(3, -1)
        whole, *each = (first - 2 * second + third) / (_INSIDE / 2) ** 2
        images = len(each)
        bent = images / (images - 1) * (whole - sum(each))
        return self.trust * float(alone.mean() - drawn.mean() + self.hidden**2 * bent / 2)


def bends(
    audit: AuditedCounts, parts: Parted, diversity: ExpectedDiversity, *, rng: np.random.Generator
) -> tuple[Array, float]:
    """Give what is to be added to the value for each part of the audited images, (n_parts,), and how far to trust it.

    `diversity` is the mean diversity of batches, as a function of shares or of images.
    """
    chains = len(parts.imputed.counts)
    enough = np.flatnonzero(audit.mapped.sum(axis=1) >= diversity.size)
    seen = [
        _bend_of(chain, int(prompt), audit, parts, rng)
        for chain in range(chains)
        for prompt in enough
        if ((parts.part == chain) & (audit.found.prompt == prompt)).sum() > 1
    ]
    slope = np.zeros(chains)
    if not seen:
        return slope, 0.0
    steps = _values_of(diversity, [one.steps() for one in seen])
    drawn, alone = (
        _values_of(diversity.of_images, each) for each in ([one.drawn for one in seen], [one.alone for one in seen])
    )
    for one, *values in zip(seen, steps, drawn, alone, strict=True):
        slope[one.chain] += one.added(*values) / len(enough)
    return slope, sum(one.trust for one in seen) / len(enough) / chains


def _values_of(diversity: Callable[[NDArray[Any]], Array], rows: Sequence[NDArray[Any]]) -> list[Array]:
    """Give the diversity of many rows at once, part by part."""
    return np.split(diversity(np.concatenate(rows)), np.cumsum([len(each) for each in rows])[:-1])


def _bend_of(chain: int, prompt: int, audit: AuditedCounts, parts: Parted, rng: np.random.Generator) -> Bend:
    """Say what images of a prompt show beyond what was imputed, and draw the labels of all one by one."""
    mapped, found, imputed, part = audit.mapped[prompt], audit.found, parts.imputed, parts.part
    cells = imputed.prompt == prompt
    chances, column = imputed.chances[chain, cells], np.searchsorted(imputed.mapped[cells], found.mapped)
    held, known = ((found.prompt == prompt) & which for which in (part == chain, part != chain))
    hidden = mapped[imputed.mapped[cells]] - np.bincount(column[known], minlength=len(chances))
    odds = np.vstack([chances, found.shown[known]])
    odds /= odds.sum(axis=1, keepdims=True)
    images = np.append(hidden, np.ones(known.sum(), np.int64))
    alone = rng.multinomial(images, odds, size=(_TIMES, len(odds))).sum(axis=1)
    left_out = chances[column[held]]
    shares = (1 - _INSIDE) * (images @ odds) / images.sum() + _INSIDE * left_out.mean(axis=0)
    beyond = found.shown[held] - left_out
    return Bend(chain, hidden.sum() / images.sum(), shares, beyond, imputed.counts[chain, :, prompt], alone)


_FOLDS = 3
_STEP = 1e-5
_LINE = 0.02  # How far shares are moved to see diversity bend, at most, in parts of themselves

CAUTION = 1.05  # By how much intervals are wider than draws and error tell: both are estimates

_MOST_SKEWED = 2.0  # The skewness of an exponential law

_ROWS = 6_000  # Rows of counts whose diversity is computed per fold: with many prompts fewer of the draws


def parted(audit: AuditedCounts, *, rng: np.random.Generator) -> Parted:
    """Part the audited images, and impute what all images show without each part."""
    part = np.arange(audit.audited) % _FOLDS
    part = part[rng.permutation(len(part))]
    return Parted(part, impute(audit, part != np.arange(_FOLDS)[:, None], rng=rng))


def rectified(
    audit: AuditedCounts,
    parts: Parted,
    diversity: ExpectedDiversity,
    *,
    confidence: float,
    rng: np.random.Generator,
) -> RatedInterval:
    """Estimate the mean diversity of the prompts that have images for a batch.

    Raises:
        UsageError: no prompt has images for a batch.
    """
    mapped, found = audit.mapped, audit.found
    if not (mapped.sum(axis=1) >= diversity.size).any():
        raise UsageError("no prompt has as many images as a batch", expected=f"{diversity.size} images of some prompt")
    imputed = parts.imputed
    counts = _some_counts(imputed.counts, diversity.size)
    draws = _drawn_values(counts, diversity)
    images = _images_scatter(mapped, imputed.drawn, diversity, rng)
    slopes = slopes_of(diversity, imputed.shares, mapped)
    shift, rest, alone, erring = _shift_of(audit, parts, slopes)
    left = images, beyond(draws, counts, slopes.mean(axis=0))
    new = _unmet(mapped, parts.part, slopes) * max(-math.log(2 * (1 - confidence)), 0.0) / len(parts.part)
    bent, trust = bends(audit, parts, diversity, rng=rng)
    overshot = (1 - trust) * max(shift, 0.0)  # where no pairs tell the bend, the lower limit allows for it
    value, bending = float(draws.mean()) + shift + float(bent.mean()), float(bent.std(ddof=1)) / len(bent) ** 0.5
    spread = float((draws - draws.mean(axis=1, keepdims=True)).std())
    bend = bend_along(diversity, imputed.shares, mapped, slopes)
    lowest, one = 1 / diversity.size, (found.shown > 0.5).any(axis=0).sum() == 1  # people saw one label and no other
    within = float(np.clip(value, lowest, 1.0))
    limits: list[float] = []
    for raters in (erring, 0.0):
        error = (rest + (bend * rest) ** 2 / 2 + sum(left) + raters) ** 0.5
        most = (alone + (bend * alone) ** 2 / 2 + left[1] + raters) ** 0.5
        below, above = distances(max(spread, error), most, 3 * bend * rest**2, confidence)
        below, above = math.hypot(below, overshot, bending), math.hypot(above, new, bending)
        limits += [lowest if one else float(np.clip(value - below, lowest, within))]
        limits += [float(np.clip(value + above, within, 1.0))]
    low, high, *sure = limits
    return RatedInterval(within, low, high, len(found.prompt), "these", *sure)


def distances(error: float, alone: float, third: float, confidence: float) -> tuple[float, float]:
    """Give how far the limits lie below and above the value.

    Limits are those of a skewed law, gamma but for its place (Wilson and Hilferty), that leans as far as diversity
    bends: `third` is the third cumulant. Quantiles of such a law lean by z² - 1, the limits of a value that is put
    right by z² + 1, as where the value is too high, diversity looks flat (Hall). They lie no further apart than those
    that the labels of audited images alone give: `alone` is the standard error of these.
    """
    from scipy.special import ndtri

    if error == 0:
        return 0.0, 0.0
    margin = float(ndtri((1 + confidence) / 2))
    skewness = third / error**3 * (margin**2 + 1) / max(margin**2 - 1, 1.0)
    half = float(np.clip(skewness, -_MOST_SKEWED, _MOST_SKEWED)) / 2
    below, above = (
        CAUTION * error * (way if abs(half) < 1e-3 else (max(1 + half * way / 3 - half**2 / 9, 0.0) ** 3 - 1) / half)
        for way in (-margin, margin)
    )
    narrower = min(1.0, 2 * margin * alone / (above - below))
    return narrower * below, narrower * above


def _some_counts(counts: Counts, size: int) -> Counts:
    """Take of the draws as many as the diversity is computed of, int64 (n_chains, some, n_prompts, n_labels)."""
    kept, prompts = counts.shape[1], int((counts[0, 0].sum(axis=1) >= size).sum())
    some = min(kept, max(_ROWS // prompts, 30))
    return counts[:, np.linspace(0, kept - 1, some).round().astype(np.int64)]


def _drawn_values(counts: Counts, diversity: ExpectedDiversity) -> Array:
    """Give the mean diversity of prompts for draws of what their images show, float64 (n_chains, some)."""
    counts = counts[:, :, counts[0, 0].sum(axis=1) >= diversity.size]
    values = diversity.of_images(counts.reshape(-1, counts.shape[-1]))
    return np.asarray(values.reshape(counts.shape[:-1]).mean(axis=2))


def beyond(draws: Array, counts: Counts, slope: Array) -> float:
    """Give the variance of all draws that the slope does not explain.

    What people saw puts right how often labels are shown; how alike the images of a prompt are, only the draws tell,
    and they differ from one imputation to the next.
    """
    return float((draws - np.einsum("cdkl,kl->cd", counts, slope) / counts[0, 0].sum()).var())


def _images_scatter(mapped: Counts, shares: Array, diversity: ExpectedDiversity, rng: np.random.Generator) -> float:
    """Give the variance of the diversity of images around that of the shares they come from, prompts taken together."""
    images = mapped.sum(axis=1)
    enough = images >= diversity.size
    drawn = shares[:, :, enough]
    again = rng.multinomial(images[enough], drawn / drawn.sum(axis=3, keepdims=True))
    rows = (-1, drawn.shape[-1])
    away = diversity.of_images(again.reshape(rows)) - diversity(drawn.reshape(rows))
    return float((away**2).mean()) / int(enough.sum())


def slopes_of(diversity: ExpectedDiversity, shares: Array, mapped: Counts) -> Array:
    """Give how the score changes with what an image shows, in parts of all images, like the shares of chains' prompts.

    On average over a prompt it does not.
    """
    labels, weight = shares.shape[-1], _weights_of(mapped, diversity.size)
    steps = np.vstack([np.zeros(labels), _STEP * np.eye(labels)])
    values = diversity((shares[:, :, None] + steps).reshape(-1, labels)).reshape(*shares.shape[:2], -1)
    slopes = (values[:, :, 1:] - values[:, :, :1]) / _STEP
    return np.asarray(weight[:, None] * (slopes - (slopes * shares).sum(axis=2, keepdims=True)))


def _weights_of(mapped: Counts, size: int) -> Array:
    """Give what an image of each prompt counts: prompts count alike, and those without images for a batch nothing."""
    images = mapped.sum(axis=1)
    enough = images >= size
    return np.asarray(enough * images.sum() / (enough.sum() * images))


def bend_along(diversity: ExpectedDiversity, shares: Array, mapped: Counts, slopes: Array) -> float:
    """Give how far the score bends along the likeliest error of shares, where that moves it by 1.

    Shares of labels err the likelier, the more frequent these are and the more the score changes with them.
    """
    weight = _weights_of(mapped, diversity.size)
    enough = weight > 0
    shares, slopes, weight = shares[:, enough], slopes[:, enough], weight[enough]
    line = shares * slopes
    moved = float((line * slopes / weight[:, None]).sum(axis=2).mean())
    if moved < 1e-12:
        return 0.0
    step = _LINE / np.maximum(np.abs(slopes).max(axis=2), _LINE)
    places = shares + np.array([-1, 0, 1])[:, None, None, None] * step[:, :, None] * line
    first, second, third = diversity(places.reshape(-1, shares.shape[2])).reshape(3, *step.shape)
    return float(((first - 2 * second + third) / step**2).mean()) / moved**2


def _shift_of(audit: AuditedCounts, parts: Parted, slopes: Array) -> tuple[float, float, float, float]:
    """Give by how much the imputed diversity is too low to first order, and the variance of that for these images.

    The third is the variance that labels alone have, which are held against no imputation; the last what raters' errors
    add to both.
    What people saw is held against what was imputed for the same images and, as far as that is not trusted, for all
    images that the imputation did not see. The slopes come from the imputation that did not see the image: what is
    seen is more frequent there, and the slope of what is frequent is low.
    """
    mapped, found, imputed, part = audit.mapped, audit.found, parts.imputed, parts.part
    total, n = int(mapped.sum()), len(part)
    here = slopes[part, found.prompt]
    y = here[np.arange(n), found.shown.argmax(axis=1)]
    taken, even = (found.shown * here).sum(axis=1), here.mean(axis=1)
    cell = np.zeros_like(mapped)
    cell[imputed.prompt, imputed.mapped] = np.arange(len(imputed.prompt))
    expected = (imputed.chances * slopes[:, imputed.prompt]).sum(axis=2)
    p = expected[part, cell[found.prompt, found.mapped]]
    hidden = np.repeat(mapped[None, imputed.prompt, imputed.mapped], _FOLDS, axis=0)
    chain, image = np.nonzero(part != np.arange(_FOLDS)[:, None])
    np.subtract.at(hidden, (chain, cell[found.prompt[image], found.mapped[image]]), 1)
    left = (hidden.sum(axis=1) / total)[part]
    everywhere = ((expected * hidden).sum(axis=1) / hidden.sum(axis=1))[part]
    y, erring = without_errors(y, even, found)
    spread = float(p.var())
    trust = float(np.clip(np.cov(y, p)[0, 1] / spread, 0.0, 1.0)) if spread > 1e-15 else 0.0
    shift = float((left * (y - trust * p - (1 - trust) * everywhere) + (1 - left) * (y - taken)).mean())
    variance = float((y - trust * p).var(ddof=1)) * (1 / n - 1 / total)
    return shift, variance, float(y.var(ddof=1)) / n, erring


def _unmet(mapped: Counts, part: Counts, slopes: Array) -> float:
    """Give by how much a label that nobody met would raise the score, in parts of its share.

    One that has a share of 1 in n ln(1 / p) is missed by n audited images with chance p.
    """
    images = mapped.sum(axis=1)
    return float((slopes.max(axis=2) @ images)[part].mean()) / float(images.sum())


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
