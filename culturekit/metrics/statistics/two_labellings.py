"""How far two labellings of the same images agree: the share that is equal, and what is beyond chance."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.metrics.arguments import argument_error, check_confidence
from culturekit.metrics.statistics.clustered_shares import clustered_share
from culturekit.metrics.statistics.clustering import Keys, cluster_codes
from culturekit.metrics.statistics.intervals import Interval

__all__ = ["equal_share", "kappa_interval"]

Codes = NDArray[np.int64]


def equal_share(a: ArrayLike, b: ArrayLike, *, batches: Keys, confidence: float = CONFIDENCE) -> Interval:
    """Give the share of images to which both labellings give the same label, with Wilson's interval.

    Images of a batch were made together and are not independent, so the interval is that of as many independent
    images as would scatter as the batches do.

    Args:
        a: (n,): labels of the one, at least one.
        b: (n,): labels of the other, of the same images in the same order.
        batches: (n,): the batch that each image belongs to.
        confidence: how often such intervals are to hold the share of all images like these.

    Raises:
        UsageError: an argument breaks its rule.
    """
    one, other = coded(a, b)
    return clustered_share((one == other).astype(np.float64), {"batch": batches}, confidence=confidence)


def kappa_interval(a: ArrayLike, b: ArrayLike, *, batches: Keys, confidence: float = CONFIDENCE) -> Interval:
    """Give Cohen's kappa of two labellings, with a t interval from the jackknife over batches.

    Args:
        a: (n,): labels of the one, at least one.
        b: (n,): labels of the other, of the same images in the same order.
        batches: (n,): the batch that each image belongs to; batches are left out one at a time.
        confidence: how often such intervals are to hold the kappa of all images like these.

    Returns:
        Kappa is NaN where both give one and the same label to every image. There are no limits with fewer than two
        batches, and where leaving any batch out changes nothing, since then nothing says how much kappa scatters.

    Raises:
        UsageError: an argument breaks its rule.
    """
    from scipy.special import stdtrit

    check_confidence(confidence)
    one, other = coded(a, b)
    batch = cluster_codes("batches", batches, length=len(one))
    number = int(batch.max()) + 1
    value = float(kappas(one, other, np.zeros(len(one), np.int64), left_out=False)[0])
    unknown = Interval(value, math.nan, math.nan, len(one), "population")
    if number < 2 or math.isnan(value):
        return unknown
    without = kappas(one, other, batch, left_out=True)
    spread = (number - 1) / number * float(((without - without.mean()) ** 2).sum())
    if not spread > 0:
        return unknown
    margin = float(stdtrit(number - 1, (1 + confidence) / 2)) * math.sqrt(spread)
    return Interval(value, max(-1.0, value - margin), min(1.0, value + margin), len(one), "population")


def coded(a: ArrayLike, b: ArrayLike) -> tuple[Codes, Codes]:
    """Number the labels of both, the same label with the same number."""
    one, other = np.asarray(a), np.asarray(b)
    if one.ndim != 1 or one.shape != other.shape or len(one) == 0:
        raise argument_error("b", f"as long as a, and not empty; a has shape {one.shape}", f"shape {other.shape}")
    codes = np.unique(np.concatenate([one, other]), return_inverse=True)[1].astype(np.int64)
    return codes[: len(one)], codes[len(one) :]


def kappas(a: Codes, b: Codes, batch: Codes, *, left_out: bool) -> NDArray[np.float64]:
    """Compute kappa of each batch, or with `left_out` of all images but those of each batch; float64 (n_batches,)."""
    number, labels = int(batch.max()) + 1, int(max(a.max(), b.max())) + 1
    size: NDArray[np.float64] = np.bincount(batch).astype(np.float64)
    equal: NDArray[np.float64] = np.bincount(batch, weights=a == b, minlength=number).astype(np.float64)
    cells = np.unique(np.concatenate([batch * labels + a, batch * labels + b]))
    place, label = cells // labels, cells % labels
    of_a = counts(cells, batch * labels + a)
    of_b = counts(cells, batch * labels + b)
    chance: NDArray[np.float64] = np.bincount(place, weights=of_a * of_b, minlength=number).astype(np.float64)
    if left_out:
        all_a = np.bincount(a, minlength=labels).astype(np.float64)
        all_b = np.bincount(b, minlength=labels).astype(np.float64)
        crossed = np.bincount(place, weights=of_a * all_b[label] + of_b * all_a[label], minlength=number)
        chance = float(all_a @ all_b) - crossed + chance
        size, equal = len(a) - size, float((a == b).sum()) - equal
    expected = chance / size**2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(expected < 1, (equal / size - expected) / (1 - expected), np.nan))


def counts(cells: Codes, found: Codes) -> NDArray[np.float64]:
    """Count how often each cell, of sorted ones, is found."""
    return np.bincount(np.searchsorted(cells, found), minlength=len(cells)).astype(np.float64)
