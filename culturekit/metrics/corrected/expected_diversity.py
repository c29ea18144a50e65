"""The diversity that batches have on average when their labels are drawn from known shares, exactly.

A batch of n labels falls into groups of equal labels; the sizes of the groups are a partition of n. With
shares p the partition l of j items has the weight m_l(p) / (l_1! l_2! ...), where m_l is the monomial symmetric
function, and j! times the weight is its probability. m_l is a polynomial in the power sums of p, so that no label is
ever drawn and all is exact.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.diversity.spectra import effective_number

__all__ = [
    "ExpectedDiversity",
    "expected_diversity",
    "over_prompts",
    "partition_weights",
    "partitions",
    "weights_of_shares",
]

BLOCK = 2_048
"""Rows of shares worked on at a time: some hundred states each."""

Nested: TypeAlias = tuple[int, ...]
"""One number of a partition per continent in the batch, largest number first."""

Partition: TypeAlias = tuple[int, ...]
"""Group sizes, largest first."""

Blocks: TypeAlias = tuple[tuple[int, ...], ...]
"""Group sizes by label, each block of one label, in falling order."""


@dataclass(frozen=True, slots=True)
class ExpectedDiversity:
    """The mean of VS_q/size over batches, as a function of the shares of nested labels.

    Attributes:
        size: items per batch.
        groups: which labels lie in which continent; one group with all labels when continents do not count.
        sizes: the partitions a continent's part of a batch can have.
        steps: int, (n_steps, 3): state before, partition added, state after, in the order of the partitions.
        ends: int, (n_ends,): the states that are a whole batch.
        scores: float64, (n_ends,): VS_q/size of each whole batch.
        states: how many states there are.
    """

    size: int
    groups: tuple[NDArray[np.int64], ...]
    sizes: tuple[Partition, ...]
    steps: NDArray[np.int64]
    ends: NDArray[np.int64]
    scores: NDArray[np.float64]
    states: int

    def __call__(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the mean for each row of shares, float64 (n, n_labels); each row sums to 1."""
        rows = np.atleast_2d(shares)
        return np.concatenate([self.block(weights_of_shares(part, self.size)) for part in parts(rows)])

    def of_images(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give the mean over all batches that images make, for each row of their labels' counts, int (n, n_labels)."""
        return np.concatenate([self.block(weights_of_counts(part, self.size)) for part in parts(counts)])

    def block(self, of_labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the mean for some rows: few enough that their states need little memory."""
        reached = np.zeros((self.states, of_labels.shape[2]))
        reached[0] = 1.0
        for group in self.groups:
            weights = partition_weights(of_labels[:, group], self.sizes)
            after = reached.copy()
            for before, added, state in self.steps:
                after[state] += reached[before] * weights[added]
            reached = after
        return math.factorial(self.size) * (self.scores @ reached[self.ends])


def expected_diversity(
    *, size: int, continent: float, country: float, q: float, parents: Sequence[int]
) -> ExpectedDiversity:
    """Prepare the mean of VS_q/size for labels in continents.

    Args:
        size: items per batch.
        continent: the weight of the same continent.
        country: the weight of the same label; both weights sum to 1.
        q: the order.
        parents: the continent of each label; when continents do not count, they are not looked at.
    """
    sizes, steps, ends, states, scores = batch_types(size, continent, country, q)
    inside = np.asarray(parents) if continent > 0 else np.zeros(len(parents), np.int64)
    groups = tuple(np.flatnonzero(inside == parent) for parent in np.unique(inside))
    if continent == 0 or len(groups) == 1:
        # With one group the whole batch lies in it: only whole partitions are needed.
        whole = [row for row, kind in enumerate(sizes) if sum(kind) == size]
        single = tuple(sizes[row] for row in whole)
        values = np.array([score_of((kind,), size, continent, country, q) for kind in single])
        only = np.array([[0, row, row + 1] for row in range(len(single))])
        return ExpectedDiversity(size, groups, single, only, np.arange(1, len(single) + 1), values, len(single) + 1)
    return ExpectedDiversity(size, groups, sizes, steps, ends, scores, states)


def parts(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Part rows into blocks."""
    return (rows[start : start + BLOCK] for start in range(0, max(len(rows), 1), BLOCK))


def over_prompts(diversity: ExpectedDiversity, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average the diversity over prompts, float64 (draws,), from shares (draws, n_prompts, n_labels)."""
    values = diversity(shares.reshape(-1, shares.shape[-1]))
    return np.asarray(values.reshape(shares.shape[:-1]).mean(axis=1))


@cache
def batch_types(
    size: int, continent: float, country: float, q: float
) -> tuple[tuple[Partition, ...], NDArray[np.int64], NDArray[np.int64], int, NDArray[np.float64]]:
    """List what a batch can be, adding continents one after the other, and score the whole batches."""
    sizes = tuple(kind for total in range(1, size + 1) for kind in partitions(total))
    found: dict[Nested, int] = {}
    for total in range(size + 1):
        for state in nested(total, sizes, len(sizes) - 1):
            found[state] = len(found)
    steps = []
    for state, number in found.items():
        used = sum(sum(sizes[kind]) for kind in state)
        for added, kind in enumerate(sizes):
            if used + sum(kind) <= size:
                steps.append((number, added, found[tuple(sorted((*state, added), reverse=True))]))
    whole = [state for state in found if sum(sum(sizes[kind]) for kind in state) == size]
    scores = np.array([score_of([sizes[kind] for kind in state], size, continent, country, q) for state in whole])
    return sizes, np.array(steps), np.array([found[state] for state in whole]), len(found), scores


def nested(total: int, sizes: Sequence[Partition], largest: int) -> Iterator[Nested]:
    """List the multisets of partitions with so many items in all."""
    if total == 0:
        yield ()
        return
    for first in range(largest, -1, -1):
        if sum(sizes[first]) <= total:
            for rest in nested(total - sum(sizes[first]), sizes, first):
                yield (first, *rest)


def score_of(continents: Sequence[Partition], size: int, continent: float, country: float, q: float) -> float:
    """Compute VS_q/size of a batch whose countries have these counts, one partition per continent."""
    counts = [(place, count) for place, kind in enumerate(continents) for count in kind]
    of_item = np.array([(place, label) for label, (place, count) in enumerate(counts) for _ in range(count)])
    same_continent = of_item[:, None, 0] == of_item[None, :, 0]
    same_country = of_item[:, None, 1] == of_item[None, :, 1]
    eigenvalues = np.linalg.eigvalsh((continent * same_continent + country * same_country) / size)
    return float(effective_number(eigenvalues, q=q)) / size


def partitions(total: int, largest: int | None = None) -> Iterator[Partition]:
    """List the partitions of a number."""
    if total == 0:
        yield ()
        return
    for first in range(min(total, total if largest is None else largest), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)


@cache
def in_sums(blocks: Blocks) -> dict[Blocks, int]:
    """Write the sum of w_1(a) w_2(b) ... over different labels a, b, ... as products of sums over one label each.

    A block lists the group sizes whose weights are multiplied for the label that the sum runs over.
    """
    if len(blocks) <= 1:
        return {blocks: 1}
    first, rest = blocks[0], blocks[1:]
    terms: Counter[Blocks] = Counter()
    for product, factor in in_sums(rest).items():
        terms[tuple(sorted((*product, first), reverse=True))] += factor
    for place in range(len(rest)):  # take out what counts one label twice
        merged = tuple(sorted((*rest[place], *first), reverse=True))
        for product, factor in in_sums(
            tuple(sorted((*rest[:place], merged, *rest[place + 1 :]), reverse=True))
        ).items():
            terms[product] -= factor
    return dict(terms)


def weights_of_shares(shares: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    """Weigh s items of one label, drawn with replacement, by p^s / s!.

    Args:
        shares: float64, (n, n_labels).
        order: the largest s.

    Returns:
        float64, (order + 1, n_labels, n).
    """
    weights = np.ones((order + 1, *shares.T.shape))
    for size in range(1, order + 1):
        weights[size] = weights[size - 1] * shares.T / size
    return weights


def weights_of_counts(counts: NDArray[np.int64], order: int) -> NDArray[np.float64]:
    """Weigh s items of one label, drawn without replacement: as `weights_of_shares` does, for counts of images.

    A batch of `order` images has the chance 1 / (N (N - 1) ...) for each order that it can be drawn in; an image bears
    the `order`-th root of it.
    """
    totals = counts.sum(axis=1).astype(np.float64)
    scale = np.prod([totals - taken for taken in range(order)], axis=0) ** (1 / order)
    weights = np.ones((order + 1, *counts.T.shape))
    for size in range(1, order + 1):
        weights[size] = weights[size - 1] * np.maximum(counts.T - (size - 1), 0) / (size * scale)
    return weights


def partition_weights(weights: NDArray[np.float64], listed: tuple[Partition, ...]) -> NDArray[np.float64]:
    """Give the weight of each listed partition, float64 (n_listed, n), from weights (order + 1, n_labels, n)."""
    of_labels: dict[tuple[int, ...], NDArray[np.float64]] = {}
    sums: dict[tuple[int, ...], NDArray[np.float64]] = {}
    products: dict[Blocks, NDArray[np.float64]] = {(): np.ones(weights.shape[2])}

    def of_label(block: tuple[int, ...]) -> NDArray[np.float64]:
        if len(block) == 1:
            return np.asarray(weights[block[0]])
        if block not in of_labels:
            of_labels[block] = weights[block[0]] * of_label(block[1:])
        return of_labels[block]

    def product(key: Blocks) -> NDArray[np.float64]:
        if key not in products:
            if key[0] not in sums:
                sums[key[0]] = of_label(key[0]).sum(axis=0)
            products[key] = product(key[1:]) * sums[key[0]]
        return products[key]

    found = np.empty((len(listed), weights.shape[2]))
    for row, sizes in enumerate(listed):
        total = np.zeros(weights.shape[2])
        for key, factor in in_sums(tuple((size,) for size in sizes)).items():
            total += factor * product(key)
        found[row] = total / math.prod(math.factorial(times) for times in Counter(sizes).values())
    return found
