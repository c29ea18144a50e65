"""The diversity of a whole collection: at a fixed number of items, and in the limit of many."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.metrics.arguments import argument_error, check_count, check_order
from culturekit.metrics.diversity.batch_diversity import cut_batches, scorer_of_batches
from culturekit.metrics.diversity.kernels import Kernel, check_weights, counting_levels
from culturekit.metrics.diversity.label_classes import LabelClasses, label_classes
from culturekit.metrics.diversity.label_spectra import effective_numbers
from culturekit.metrics.diversity.labels import Codes, Labels, Missing, code_levels
from culturekit.metrics.statistics.intervals import Interval, Mean, half_width

__all__ = ["jackknife", "jackknife_groups", "vendi_jackknife", "vendi_rarefied"]

SHUFFLES = 10
"""How often the items are dealt into batches; more makes the value depend less on chance."""

GROUPS = 100
"""How many groups of items are left out in turn."""


def vendi_rarefied(
    labels: Labels,
    *,
    size: int,
    weights: Kernel,
    q: float = 1.0,
    missing: Missing = "distinct",
    normalize_labels: bool = True,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator,
) -> Interval:
    """Estimate VS@size: the Vendi score that `size` items drawn from where these came from have on average.

    The items are dealt into disjoint batches at random, several times over. Batches of one deal are independent,
    so a t interval over them holds; over several deals its width is averaged, which makes it a little too wide.

    Args:
        labels: N triples, as for `vendi`, of items drawn independently.
        size: how many items make a batch, at most N.
        weights: of the same continent, the same country, the same artifact, or a name, as for `vendi`.
        q: the order, above 0.
        missing: what None means, as for `vendi`.
        normalize_labels: whether spelling differences of labels are ignored.
        confidence: how often such intervals are to hold the truth.
        rng: deals the items.

    Returns:
        VS@size, between 1 and size, and its interval; without one where there are not two batches.

    Raises:
        UsageError: an argument breaks its rule.
    """
    check_order(q)
    check_count("size", size)
    checked = check_weights(weights)
    levels = counting_levels(checked)
    codes = code_levels(labels, levels=levels, missing=missing, normalize=normalize_labels)
    items = len(codes[0])
    if size > items:
        raise argument_error("size", f"at most the number of items, {items}", size)
    deals = np.array([deal(dict(zip(levels, codes, strict=True)), rng, size)(checked, q) for _ in range(SHUFFLES)])
    count = deals.shape[1]
    variance = float(deals.var(axis=1, ddof=1).mean()) / count if count > 1 else math.nan
    mean = Mean(float(deals.mean()) * size, variance * size**2, count - 1.0)
    margin = half_width(mean, confidence=confidence)
    return Interval(mean.value, mean.value - margin, mean.value + margin, items, "population")


def deal(
    codes: dict[int, Codes], rng: np.random.Generator, size: int
) -> Callable[[tuple[float, float, float], float], NDArray[np.float64]]:
    """Shuffle the items and cut them into full batches."""
    items = len(next(iter(codes.values())))
    order = rng.permutation(items)
    shuffled = {level: column[order] for level, column in codes.items()}
    return scorer_of_batches(shuffled, cut_batches(np.zeros(items, np.int8), size, "drop"))


def vendi_jackknife(
    labels: Labels,
    *,
    weights: Kernel,
    q: float = 1.0,
    missing: Missing = "distinct",
    normalize_labels: bool = True,
    groups: int = GROUPS,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator,
) -> Interval:
    """Estimate the Vendi score in the limit of many items, correcting the bias of having N: approximately.

    Groups of items are left out in turn. The correction takes away the part of the bias that falls as 1/N. What
    remains is small where most labels that exist were seen many times, and unknown elsewhere: no method can count
    labels that were not seen. Compare collections by `vendi_rarefied` instead.

    Args:
        labels: N triples, as for `vendi`, of items drawn independently.
        weights: of the same continent, the same country, the same artifact, or a name, as for `vendi`.
        q: the order, above 0.
        missing: what None means, as for `vendi`.
        normalize_labels: whether spelling differences of labels are ignored.
        groups: how many groups the items are parted into, at least 2; with N of them each item is one.
        confidence: how often such intervals would hold the truth if the bias were gone.
        rng: parts the items.

    Returns:
        The corrected score and its interval; a single item has none.

    Raises:
        UsageError: an argument breaks its rule.
    """
    check_order(q)
    checked = check_weights(weights)
    if groups < 2:
        raise argument_error("groups", "at least 2", groups)
    levels = counting_levels(checked)
    codes = code_levels(labels, levels=levels, missing=missing, normalize=normalize_labels)
    classes = label_classes(codes)
    member = class_numbers(codes)
    kernel = [checked[level] for level in levels]

    def score(kept: NDArray[np.bool_]) -> float:
        counts = np.bincount(member[kept], minlength=len(classes.counts))
        return effective_numbers(LabelClasses(classes.labels[counts > 0], counts[counts > 0]), kernel, [q])[0]

    return jackknife(score, jackknife_groups(len(member), groups, rng), confidence=confidence)


def class_numbers(codes: Sequence[Codes]) -> NDArray[np.int64]:
    """Number the class of each item, in the order of `label_classes`."""
    from culturekit.metrics.diversity.label_classes import combined

    return np.unique(combined(codes), return_inverse=True)[1].astype(np.int64)


def jackknife_groups(items: int, groups: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Part items into groups of equal size, or of sizes that differ by one, at random: a number each, (n_items,)."""
    return rng.permutation(items) % min(groups, items)


def jackknife(
    statistic: Callable[[NDArray[np.bool_]], float], groups: NDArray[np.int64], *, confidence: float
) -> Interval:
    """Correct the bias of a statistic that is smooth in the shares of the items, and say how certain it is.

    Groups may differ in size (Busing, Meijer and van der Leeden 1999).

    Args:
        statistic: of the items that are kept, bool (n_items,).
        groups: int64, (n_items,): which group is left out together with each item, from 0 on.
        confidence: how often such intervals are to hold the truth.
    """
    items, count = len(groups), int(groups.max()) + 1
    whole = statistic(np.ones(items, np.bool_))
    if count == 1:
        return Interval(whole, math.nan, math.nan, items, "population")
    without = np.array([statistic(groups != number) for number in range(count)])
    ratio = items / np.bincount(groups)
    value = float(count * whole - ((1 - 1 / ratio) * without).sum())
    pseudo = ratio * whole - (ratio - 1) * without
    variance = float((((pseudo - value) ** 2) / (ratio - 1)).mean())
    margin = half_width(Mean(value, variance, count - 1.0), confidence=confidence)
    return Interval(value, value - margin, value + margin, items, "population")
