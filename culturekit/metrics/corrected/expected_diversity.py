"""The diversity that batches have on average when their labels are drawn from known shares, exactly.

A label that fills s places of a batch weighs p^s / s!; weights of what fills a batch multiply, and n! times their sum
is a chance. So batches are filled label by label, and of a part only what matters is kept: of a continent how many
places each of its labels fills; of a batch how many places are filled in all, where q = 1, for then VS is a product
over continents, or over labels where continents do not count; for other orders by what parts.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.core.arrays import Array
from culturekit.metrics.diversity.label_spectra import effective_number

NEAR = 100_000  # Numbers worked on at a time: so many fit a processor's nearer memory

ROUNDING = 1e-12  # Eigenvalues below are 0 but for rounding

Rows: TypeAlias = NDArray[np.int64] | slice

Parts: TypeAlias = tuple[int, ...]
"""Of what kinds the parts of something are, largest number first; the kind of a label is how many places it fills."""


@dataclass(frozen=True, slots=True)
class Filling:
    """How something is filled part by part."""

    states: Sequence[Parts]  # of what parts it can be; what is empty comes first
    # for each kind of part, from 1, the states that have room for it, and the states it leads to
    steps: Sequence[tuple[Rows, Rows]]

    def filled(self, parts: Iterable[Array], rows: int) -> Array:
        """Give the weight of each state, float64 (n_states, rows), from those of parts by kind, (n_kinds, rows)."""
        reached = np.zeros((len(self.states), rows))
        reached[0] = 1.0
        for part in parts:
            after = reached.copy()
            for weight, (before, to) in zip(part, self.steps, strict=True):
                after[to] += reached[before] * weight
            reached = after
        return reached


@dataclass(frozen=True, slots=True)
class ExpectedDiversity:
    """The mean of VS_q/size over batches, as a function of the shares of nested labels."""

    size: int  # items per batch
    groups: Sequence[NDArray[np.int64]]  # which labels lie in which continent; none where continents do not count
    continent: Filling  # how a continent is filled with labels
    batch: Filling  # how a batch is filled with continents, or with labels
    # float64, (n_kinds, n_states - 1): how a part of a batch weighs, by the state of its continent, or by how
    # many places a label fills
    kinds: Array
    scores: Array  # float64, (n_states,): VS_q/size of batches times the ways to order them; 0 where places are left

    def __call__(self, shares: Array) -> Array:
        """Give the mean for each row of shares, float64 (n, n_labels); each row sums to 1."""
        return np.concatenate(
            [self.mean(weights_of_shares(rows, self.size)) for rows in self.blocks(np.atleast_2d(shares))]
        )

    def of_images(self, counts: NDArray[np.int64]) -> Array:
        """Give the mean over all batches that images make, for each row of their labels' counts, int (n, n_labels)."""
        return np.concatenate([self.mean(weights_of_counts(rows, self.size)) for rows in self.blocks(counts)])

    def mean(self, labels: Array) -> Array:
        """Give the mean for some rows, from the weights of labels, float64 (n_labels, size, rows)."""
        rows = labels.shape[2]
        continents = (self.continent.filled(labels[group], rows)[1:] for group in self.groups)
        parts = (self.kinds @ part for part in (continents if self.groups else labels))
        return np.asarray(self.scores @ self.batch.filled(parts, rows))

    def blocks(self, rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Part rows into blocks."""
        each = NEAR // max(len(self.batch.states), len(self.continent.states) if self.groups else 0)
        return (rows[start : start + each] for start in range(0, max(len(rows), 1), each))


def expected_diversity(
    *, size: int, continent: float, country: float, q: float, parents: Sequence[int]
) -> ExpectedDiversity:
    """Prepare the mean of VS_q/size for labels in continents.

    The weights of the same continent and label sum to 1; `parents` are the continents of labels, if these count.
    """
    inside = np.asarray(parents)
    groups = [np.flatnonzero(inside == parent) for parent in np.unique(inside)] if continent > 0 else []
    return ExpectedDiversity(size, groups, *prepared(size, continent, country, q))


def over_prompts(diversity: ExpectedDiversity, shares: Array) -> Array:
    """Average the diversity over prompts, float64 (draws,), from shares (draws, n_prompts, n_labels)."""
    values = diversity(shares.reshape(-1, shares.shape[-1]))
    return np.asarray(values.reshape(shares.shape[:-1]).mean(axis=1))


@cache
def prepared(size: int, continent: float, country: float, q: float) -> tuple[Filling, Filling, Array, Array]:
    """List how continents and batches are filled, weigh the parts of batches, and score what is full."""
    labels = filling(range(1, size + 1), size)
    parts = labels.states[1:] if continent > 0 else [(places,) for places in range(1, size + 1)]
    totals = [sum(part) for part in parts]
    if q == 1:
        kinds = np.zeros((size, len(parts)))
        for column, part in enumerate(parts):
            values = spectrum([part], size, continent, country)
            kinds[totals[column] - 1, column] = math.exp(-float(values @ np.log(values)))
        return labels, places_filled(size), kinds, np.append(np.zeros(size), math.factorial(size) / size)
    batch = filling(totals, size)
    scores = [
        effective_number(spectrum([parts[kind - 1] for kind in state], size, continent, country), q=q)
        if sum(totals[kind - 1] for kind in state) == size
        else 0.0
        for state in batch.states
    ]
    return labels, batch, np.eye(len(parts)), np.array(scores) * math.factorial(size) / size


def filling(totals: Sequence[int], size: int) -> Filling:
    """List what parts of some kinds make, numbered from 1 and of so many places each, in up to `size` places."""
    states = [state for places in range(size + 1) for state in made_of(places, totals, len(totals))]
    number = {state: row for row, state in enumerate(states)}
    filled = [sum(totals[kind - 1] for kind in state) for state in states]
    steps = []
    for kind, places in enumerate(totals, 1):
        before = [row for row, taken in enumerate(filled) if taken + places <= size]
        to = [number[tuple(sorted((*states[row], kind), reverse=True))] for row in before]
        steps.append((np.array(before), np.array(to)))
    return Filling(states, steps)


def places_filled(size: int) -> Filling:
    """List how many places are filled where nothing else of a batch matters."""
    steps = [(slice(size + 1 - places), slice(places, size + 1)) for places in range(1, size + 1)]
    return Filling([(places,) for places in range(size + 1)], steps)


def made_of(places: int, totals: Sequence[int], largest: int) -> Iterator[Parts]:
    """List of what parts so many places can be filled, by kinds up to the largest."""
    if places == 0:
        yield ()
        return
    for kind in range(largest, 0, -1):
        if totals[kind - 1] <= places:
            for rest in made_of(places - totals[kind - 1], totals, kind):
                yield (kind, *rest)


def spectrum(continents: Sequence[Parts], size: int, continent: float, country: float) -> Array:
    """Give the eigenvalues above 0 of images whose countries fill so many places of a batch, continent by continent."""
    found = []
    for part in continents:
        same = np.repeat(np.arange(len(part)), part)
        kernel = continent + country * (same[:, None] == same[None, :])
        found.append(np.linalg.eigvalsh(kernel / size))
    values = np.concatenate(found)
    return np.asarray(values[values > ROUNDING])


def weights_of_shares(shares: Array, size: int) -> Array:
    """Weigh labels that fill 1, 2 ... places of a batch, drawn with replacement: p^s / s!.

    From float64 (n, n_labels), float64 (n_labels, size, n).

    Returns:
        float64, (n_labels, size, n).
    """
    return weights_of(shares.T, np.zeros(size), np.ones(len(shares)))


def weights_of_counts(counts: NDArray[np.int64], size: int) -> Array:
    """Weigh labels as `weights_of_shares` does where no image is in a batch twice, for counts of images.

    A batch has the chance 1 / (N (N - 1) ...) for each order that it can be drawn in; an image bears the n-th root.
    """
    taken = np.arange(size)
    scale = np.prod(counts.sum(axis=1)[:, None] - taken, axis=1, dtype=np.float64) ** (1 / size)
    return weights_of(counts.T, taken, scale)


def weights_of(numbers: NDArray[Any], taken: NDArray[Any], scale: Array) -> Array:
    """Multiply what is left of numbers, (n_labels, n), when 0, 1 ... are taken, over the scale and over s!."""
    places = np.arange(1, len(taken) + 1)[:, None]
    factors = np.maximum(numbers[:, None] - taken[:, None], 0) / (places * scale)
    return np.asarray(np.cumprod(factors, axis=1))
