"""Vendi scores of many small batches at once, as the CUBE protocol asks: 8 images, 50 times over, each pattern once."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.core.choices import BATCH_SIZE, CONFIDENCE
from culturekit.core.errors import argument_error, check_choice
from culturekit.metrics.arguments import check_confidence, check_count, check_order
from culturekit.metrics.diversity.label_spectra import effective_number, effective_numbers
from culturekit.metrics.diversity.labels import (
    Codes,
    Kernel,
    LabelClasses,
    Labels,
    Missing,
    Weights,
    check_weights,
    code_levels,
    combined,
    counting_levels,
    is_single,
    label_classes,
    several_weights,
)
from culturekit.metrics.statistics.intervals import Interval, Mean, mean_interval

Places: TypeAlias = NDArray[np.uint8]

BLOCK = 4096  # Batches worked on at a time: few enough to stay in a processor's cache

LARGEST = 64  # Items of larger batches hardly ever fall into the same pattern twice


@dataclass(frozen=True, slots=True)
class Signatures:
    """The different patterns among some batches."""

    of_batch: NDArray[np.int64]  # int64, (n_batches,): the number of each batch's pattern
    # by level, uint8, (n_patterns, size): the first place with the same label, or `size` where there is no item.
    # Places are those of the pattern: items stand in an order of its own
    places: dict[int, Places]
    filled: NDArray[np.int64]  # int64, (n_patterns,): how many items there are

    @property
    def size(self) -> int:
        """How many places a batch has."""
        return int(next(iter(self.places.values())).shape[1])

    def alike(self, level: int) -> NDArray[np.bool_]:
        """Tell which items of a pattern have equal labels, bool (n_patterns, size, size)."""
        columns = self.places[level]
        return np.asarray((columns[:, :, None] == columns[:, None, :]) & (columns < self.size)[:, :, None])


def signatures_of(codes: Mapping[int, Codes], rows: NDArray[np.int64], present: NDArray[np.bool_]) -> Signatures:
    """Find the patterns of batches.

    The items of a batch are put in order by the sizes of their groups of equal labels, coarse levels first. Two
    batches with the same pattern may still come out differently where groups tie: that costs a second solution,
    and changes no score.

    Args:
        codes: by level, coarse levels first, (n_rows,): coded labels.
        rows: int64, (n_batches, size): which rows make which batch; at most LARGEST.
        present: bool, (n_batches, size): which of these places are filled.
    """
    columns = [np.ascontiguousarray(column) for column in codes.values()]
    blocks = [slice(start, start + BLOCK) for start in range(0, len(rows), BLOCK)]
    words = [numbers_of(patterns(columns, rows[block], present[block])) for block in blocks]
    numbers, firsts = numbered([np.concatenate(word) for word in zip(*words, strict=True)])
    found = patterns(columns, rows[firsts], present[firsts])
    return Signatures(
        numbers, {level: codes_at.T for level, codes_at in zip(codes, found, strict=True)}, present[firsts].sum(axis=1)
    )


def patterns(columns: Sequence[Codes], rows: NDArray[np.int64], present: NDArray[np.bool_]) -> list[Places]:
    """Put the items of each batch in order, and say for each level which are alike."""
    where, filled = np.ascontiguousarray(rows.T), present.T
    bits = (rows.shape[1] + 1).bit_length()
    key = np.zeros(where.shape, np.int32 if 2 * bits * len(columns) < 32 else np.int64)
    for column in columns:
        places, sizes = alike(column[where])
        if not present.all():
            # An empty place repeats a row, which must not count.
            places, sizes = alike(np.where(filled, column[where], -1 - np.arange(len(where))[:, None]))
            places[~filled], sizes[~filled] = len(where), 0
        key = (((key << bits) | (len(where) - sizes)) << bits) | places
    key.sort(axis=0)
    ordered: list[np.ndarray] = []
    for number in reversed(range(len(columns))):
        positions = ((key >> (2 * number * bits)) & (2**bits - 1)).astype(np.uint8)
        again = alike(positions)[0] if ordered else runs(positions)
        ordered.append(again if present.all() else np.where(positions == len(where), positions, again))
    return ordered


def runs(places: Places) -> Places:
    """Do what `alike` does where equal places stand next to each other, as those of the coarsest level do."""
    firsts = np.zeros_like(places)
    for index in range(1, len(places)):
        same = (places[index] == places[index - 1]).view(np.uint8)
        np.maximum(firsts[index - 1], (np.uint8(1) - same) * np.uint8(index), out=firsts[index])
    return firsts


def alike(labels: NDArray[Any]) -> tuple[Places, Places]:
    """Find for each label, (size, n_batches), the first place of the batch that has it, and how many have it.

    No branch depends on the labels: ten times as fast as choosing by a mask.
    """
    places = np.empty(labels.shape, np.uint8)
    sizes = np.ones(labels.shape, np.uint8)
    for index in range(len(labels)):
        places[index] = index
        for earlier in range(index):
            same = (labels[index] == labels[earlier]).view(np.uint8)
            sizes[index] += same
            sizes[earlier] += same
            # Where they are the same, 1 - 1 | earlier is earlier; elsewhere 0 - 1 wraps to 255.
            np.minimum(places[index], (same - np.uint8(1)) | np.uint8(earlier), out=places[index])
    return places, sizes


def numbers_of(levels: Sequence[Places]) -> list[NDArray[np.int64]]:
    """Write the patterns of batches as few large numbers."""
    bits = (len(levels[0]) + 1).bit_length()
    fit = 62 // bits
    columns = [row for places in levels for row in places]
    words = []
    for start in range(0, len(columns), fit):
        word = np.zeros(len(columns[0]), np.int64)
        for column in columns[start : start + fit]:
            word = (word << bits) | column
        words.append(word)
    return words


def numbered(words: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the batches by the words that describe them, and give one batch for each number."""
    key, *others = words
    for word in others:
        wide = ranks(word)
        key = ranks(key) * (int(wide.max()) + 1) + wide
    numbers = ranks(key)
    firsts = np.empty(int(numbers.max()) + 1, np.int64)
    firsts[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return numbers, firsts


def ranks(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the values of a key in their order: where few differ, a search is faster than an indirect sort."""
    return np.searchsorted(np.unique(key), key)


# What happens to an incomplete batch: it is dropped, or it is scored and divided by the full size
Partial: TypeAlias = Literal["drop", "paper"]

# From weights and order to VS/size of each batch
BatchScorer: TypeAlias = Callable[[Weights, float], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Batches:
    """Which rows make which batch."""

    rows: NDArray[np.int64]  # int64, (n_batches, size): row numbers; a place that is not filled repeats the last row
    present: NDArray[np.bool_]  # bool, (n_batches, size): which places are filled


def vendi_batches(
    labels: Labels,
    *,
    size: int = BATCH_SIZE,
    weights: Kernel | Sequence[Kernel],
    q: float = 1.0,
    missing: Missing = "distinct",
    normalize_labels: bool = True,
    partial: Partial = "drop",
) -> NDArray[np.float64]:
    """Score consecutive batches: VS/size of each.

    Batches whose labels are equal in the same pattern have the same score, so each pattern is solved once.

    Args:
        labels: N triples in the order in which they make batches, as for `vendi`.
        size: how many items make a batch.
        weights: of the same continent, the same country, the same artifact, or a name, as for `vendi`; one or several.
        q: the order, above 0.
        missing: what None means, as for `vendi`.
        normalize_labels: whether spelling differences of labels are ignored.
        partial: `drop` leaves an incomplete last batch out. `paper` divides its VS by `size` all the same,
            as the notebook of CUBE's authors does, which scores it low for being small.

    Returns:
        float64, (n_batches,), each between 1/size and 1; empty when nothing fills a batch. Several triples of
        weights give (n_kernels, n_batches).

    Example:
        >>> labels = [("Asia", "JP", "obi"), ("Asia", "JP", "obi"), ("Europe", "IT", "tarantella")] * 2
        >>> ck.vendi_batches(labels, size=3, weights=(0, 1, 0)).round(2).tolist()
        [0.63, 0.63]
    """
    check_order(q)
    check_count("size", size)
    check_choice("partial", partial, ("drop", "paper"))
    kernels = several_weights(weights)
    levels = sorted({level for kernel in kernels for level in counting_levels(kernel)})
    coded = code_levels(labels, levels=levels, missing=missing, normalize=normalize_labels)
    batches = cut_batches(np.zeros(len(coded[0]), np.int8), size, partial)
    score = scorer_of_batches(dict(zip(levels, coded, strict=True)), batches)
    scores = np.array([score(kernel, q) for kernel in kernels])
    return scores[0] if is_single(weights) else scores


def cut_batches(runs: NDArray[Any], size: int, partial: Partial) -> Batches:
    """Cut each run of equal numbers in `runs`, (n_rows,) and sorted, into batches from its start on."""
    begins = np.append(0, np.flatnonzero(np.diff(runs)) + 1)
    lengths = np.diff(begins, append=len(runs))
    parts = lengths // size if partial == "drop" else -(-lengths // size)
    number = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    starts = np.repeat(begins, parts) + number * size
    left = np.repeat(lengths, parts) - number * size
    positions = np.arange(size)
    return Batches(np.minimum(starts[:, None] + positions, len(runs) - 1), positions < left[:, None])


def scorer_of_batches(codes: Mapping[int, Codes], batches: Batches) -> BatchScorer:
    """Find what the scores of batches have in common whatever the kernel and the order, and give what is left to do.

    Args:
        codes: by level, (n_rows,): coded labels of all levels that any kernel counts.
        batches: of at least one place.

    Returns:
        A function of weights and order that computes VS/size of each batch, float64 (n_batches,).
    """
    count, size = batches.rows.shape
    if count == 0:
        return lambda weights, q: np.empty(0)
    if size > LARGEST:
        return lambda weights, q: diversity_one_by_one(codes, batches, weights=weights, q=q)
    signatures = signatures_of(codes, batches.rows, batches.present)
    return lambda weights, q: diversity_of_signatures(signatures, weights=weights, q=q)


def diversity_one_by_one(
    codes: Mapping[int, Codes], batches: Batches, *, weights: Weights, q: float
) -> NDArray[np.float64]:
    """Compute VS/size of each of some large batches."""
    levels = counting_levels(weights)
    scores = []
    for rows, present in zip(batches.rows, batches.present, strict=True):
        classes = label_classes([codes[level][rows[present]] for level in levels])
        scores.append(effective_numbers(classes, [weights[level] for level in levels], [q])[0])
    return np.asarray(np.array(scores) / batches.rows.shape[1])


def diversity_of_signatures(signatures: Signatures, *, weights: Weights, q: float) -> NDArray[np.float64]:
    """Compute VS/size of each batch, float64 (n_batches,), from their signatures on all levels that count."""
    levels = counting_levels(weights)
    filled = signatures.filled
    if len(levels) == 1:
        eigenvalues: NDArray[np.float64] = label_counts(signatures.alike(levels[0])) / filled[:, None]
    else:
        kernels = sum((weights[level] * signatures.alike(level) for level in levels), np.zeros(1))
        eigenvalues = np.asarray(np.linalg.eigvalsh(kernels / filled[:, None, None]), np.float64)
    scores = np.minimum(effective_number(eigenvalues, q=q), filled) / signatures.size
    return np.asarray(scores[signatures.of_batch])


def label_counts(alike: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count each label of a batch at its first place, int64 (n_batches, size), with 0 at the other places."""
    repeated = np.tril(alike, -1).any(axis=2)
    return np.asarray(np.where(repeated, 0, alike.sum(axis=2)))


# The diversity of a whole collection: at a fixed number of items, and in the limit of many.

SHUFFLES = 10  # How often the items are dealt into batches; more makes the value depend less on chance

GROUPS = 100  # How many groups of items are left out in turn


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
    """
    check_order(q)
    check_confidence(confidence)
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
    return mean_interval(mean, n=items, target="population", confidence=confidence)


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
    """
    check_order(q)
    check_confidence(confidence)
    checked = check_weights(weights)
    if groups < 2:
        raise argument_error("groups", "at least 2", groups)
    levels = counting_levels(checked)
    codes = code_levels(labels, levels=levels, missing=missing, normalize=normalize_labels)
    score = vendi_of_kept(codes, [checked[level] for level in levels], q)
    return jackknife(score, jackknife_groups(len(codes[0]), groups, rng), confidence=confidence)


def vendi_of_kept(codes: Sequence[Codes], weights: Sequence[float], q: float) -> Callable[[NDArray[np.bool_]], float]:
    """Give VS as a function of the items that are kept, bool (n_items,); labels of all are put into classes once."""
    classes, member = label_classes(codes), np.unique(combined(codes), return_inverse=True)[1]

    def score(kept: NDArray[np.bool_]) -> float:
        counts = np.bincount(member[kept], minlength=len(classes.counts))
        return effective_numbers(LabelClasses(classes.labels[counts > 0], counts[counts > 0]), weights, [q])[0]

    return score


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
    return mean_interval(Mean(value, variance, count - 1.0), n=items, target="population", confidence=confidence)
