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

__all__ = ["Partition", "partition_weights", "partitions", "power_sums"]

Partition: TypeAlias = tuple[int, ...]
"""Group sizes, largest first."""


def partitions(total: int, largest: int | None = None) -> Iterator[Partition]:
    """List the partitions of a number."""
    if total == 0:
        yield ()
        return
    for first in range(min(total, total if largest is None else largest), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)


@cache
def in_power_sums(sizes: Partition) -> dict[Partition, int]:
    """Write the sum of p_a^l1 p_b^l2 ... over different a, b, ... as products of power sums with coefficients."""
    if len(sizes) <= 1:
        return {sizes: 1}
    first, rest = sizes[0], sizes[1:]
    terms: Counter[Partition] = Counter()
    for product, factor in in_power_sums(rest).items():
        terms[tuple(sorted((*product, first), reverse=True))] += factor
    for place in range(len(rest)):  # take out what counts one label twice
        merged = (*rest[:place], rest[place] + first, *rest[place + 1 :])
        for product, factor in in_power_sums(tuple(sorted(merged, reverse=True))).items():
            terms[product] -= factor
    return dict(terms)


def power_sums(shares: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    """Give the sums of p^1 ... p^order over the last axis, float64 (order + 1, ...); the first row is ones."""
    sums = np.ones((order + 1, *shares.shape[:-1]))
    power = np.ones_like(shares)
    for exponent in range(1, order + 1):
        power = power * shares
        sums[exponent] = power.sum(axis=-1)
    return sums


def partition_weights(shares: NDArray[np.float64], listed: tuple[Partition, ...]) -> NDArray[np.float64]:
    """Give the weight of each listed partition under shares (..., n_labels), float64 (n_listed, ...)."""
    sums = power_sums(shares, max((sum(sizes) for sizes in listed), default=0))
    products: dict[Partition, NDArray[np.float64]] = {(): np.ones(shares.shape[:-1])}

    def product(key: Partition) -> NDArray[np.float64]:
        if key not in products:
            products[key] = product(key[1:]) * sums[key[0]]
        return products[key]

    weights = np.empty((len(listed), *shares.shape[:-1]))
    for row, sizes in enumerate(listed):
        total = np.zeros(shares.shape[:-1])
        for key, factor in in_power_sums(sizes).items():
            total += factor * product(key)
        weights[row] = total / repeats(sizes)
    return weights


@cache
def repeats(sizes: Partition) -> int:
    """Count in how many ways equal groups can change places and items can change places within a group."""
    ways = math.prod(math.factorial(times) for times in Counter(sizes).values())
    return ways * math.prod(math.factorial(size) for size in sizes)
