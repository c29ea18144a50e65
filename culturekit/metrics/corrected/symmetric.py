"""Partitions of a batch, and how likely each is, from the power sums of the shares.

A batch of n labels falls into groups of equal labels; the sizes of the groups are a partition of n. With
shares p the partition l of j items has the weight m_l(p) / (l_1! l_2! ...), where m_l is the monomial symmetric
function, and j! times the weight is its probability. m_l is a polynomial in the power sums of p, so that no
label is ever drawn and all is exact.
"""

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Partition", "partition_weights", "partitions", "weights_of_counts", "weights_of_shares"]

Partition: TypeAlias = tuple[int, ...]
"""Group sizes, largest first."""

Blocks: TypeAlias = tuple[tuple[int, ...], ...]
"""Group sizes by label, each block of one label, in falling order."""


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
