"""The mean diversity of batches whose labels are drawn from known shares: every kind of batch times its chance.

Labels are taken one after the other: each may come 0, 1, 2 ... times in a batch, with weight p^c / c!. Which sizes of
groups a batch has is all that its score depends on, so that is the state; `size`! times the weight of a state is its
chance. With continents, the state of a batch is one such list of sizes for each continent that is in it.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tests.oracles.vendi import kernel_of, vendi_of_kernels

Sizes: TypeAlias = tuple[int, ...]  # How many items of a batch share a label, label by label, largest first

Weights: TypeAlias = dict[Sizes, NDArray[np.float64]]
Key = TypeVar("Key")
Rows: TypeAlias = NDArray[np.float64]  # (n, labels): shares that sum to 1


def mean_diversity(
    shares: Rows, parents: Sequence[int], *, continent: float, country: float, q: float, size: int, taken: int = 0
) -> NDArray[np.float64]:
    """Give the mean of VS_q/size over batches, (n,), for each row of shares; `parents` is each label's continent.

    With `taken` = 1 the rows are numbers of images, and batches are taken from them: none is in a batch twice.
    """
    if continent == 0:
        parents = [0] * len(parents)
    chances: dict[tuple[Sizes, ...], NDArray[np.float64]] = {(): np.ones(len(shares))}
    for parent in sorted(set(parents)):
        inside = [place for place, one in enumerate(parents) if one == parent]
        chances = with_continent(chances, sizes_within(shares[:, inside], size, taken), size)
    total = np.zeros(len(shares))
    for kinds, weight in chances.items():
        if sum(map(sum, kinds)) == size:
            total += weight * score_of_kinds(kinds, continent, country, q, size)
    images = shares.sum(axis=1)
    ways = np.prod([images - taken * step for step in range(size)], axis=0) if taken else 1.0
    return np.asarray(math.factorial(size) * total / ways)


def sizes_within(shares: Rows, size: int, taken: int) -> Weights:
    """Give the weight of each list of group sizes among some labels, up to `size` items in all."""
    states: Weights = {(): np.ones(len(shares))}
    for share in shares.T:
        powers = [np.ones(len(shares))]
        for times in range(1, size + 1):
            powers.append(powers[-1] * np.maximum(share - taken * (times - 1), 0.0) / times)
        after: Weights = {}
        for sizes, weight in states.items():
            for times in range(size - sum(sizes) + 1):
                key = tuple(sorted((*sizes, times), reverse=True)) if times else sizes
                add(after, key, weight * powers[times])
        states = after
    return states


def with_continent(
    chances: dict[tuple[Sizes, ...], NDArray[np.float64]], inside: Weights, size: int
) -> dict[tuple[Sizes, ...], NDArray[np.float64]]:
    """Add what one more continent may hold to what batches hold so far."""
    after: dict[tuple[Sizes, ...], NDArray[np.float64]] = {}
    for kinds, weight in chances.items():
        room = size - sum(map(sum, kinds))
        for sizes, more in inside.items():
            if sum(sizes) <= room:
                add(after, tuple(sorted((*kinds, sizes))) if sizes else kinds, weight * more)
    return after


def add(table: dict[Key, NDArray[np.float64]], key: Key, weight: NDArray[np.float64]) -> None:
    """Add to a sum that begins at 0."""
    table[key] = table[key] + weight if key in table else weight


@cache
def score_of_kinds(kinds: tuple[Sizes, ...], continent: float, country: float, q: float, size: int) -> float:
    """Write out a batch of that kind and give its VS_q/size."""
    rows = []
    for place, sizes in enumerate(kinds):
        for label, times in enumerate(sizes):
            rows += [(place, 100 * place + label, 0)] * times
    kernel = kernel_of(np.array(rows, np.int64), (continent, country, 0.0))
    return float(vendi_of_kernels(kernel, q)) / size
