"""Correlations of many draws of clusters at once: the same numbers as draw by draw, from how often each was drawn."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.statistics.clustering import Clustered
from culturekit.metrics.statistics.draws import Counts, Drawn, of_draws

__all__ = ["MOST_FOR_KENDALL", "drawn_kendall", "drawn_pearson", "drawn_spearman"]

MOST_FOR_KENDALL = 1500
"""With more clusters, a table of clusters by clusters takes longer than draw after draw."""

FLAT = 1e-9
"""A draw that scatters less than this share of all scatter is computed on its own: rounding would decide."""

Scalar = Callable[[NDArray[np.float64]], float]


def drawn_pearson(data: Clustered, one: Scalar) -> Drawn:
    """Compute Pearson's r of each draw; `one` computes it of rows, for draws with next to no scatter."""
    shifts = data.rows - data.rows.mean(axis=0)
    spread = np.ptp(data.rows, axis=0)
    x, y = (shifts / np.where(spread > 0, spread, 1.0)).T
    sums = np.add.reduceat(np.column_stack([np.ones_like(x), x, y, x * x, y * y, x * y]), data.starts, axis=0)
    whole = np.array([float((x * x).sum()), float((y * y).sum())]) / len(x)

    def of(times: Counts) -> NDArray[np.float64]:
        n, sx, sy, sxx, syy, sxy = (times @ sums).T
        own_x, own_y = sxx - sx**2 / n, syy - sy**2 / n
        with np.errstate(invalid="ignore", divide="ignore"):
            found = np.clip((sxy - sx * sy / n) / np.sqrt(own_x * own_y), -1.0, 1.0)
        for draw in np.flatnonzero((own_x / n <= FLAT * whole[0]) | (own_y / n <= FLAT * whole[1])):
            found[draw] = one(data.take(np.repeat(np.arange(times.shape[1]), times[draw].astype(np.int64))))
        return np.asarray(found)

    return of_draws(of, clusters=len(data.names))


def drawn_spearman(data: Clustered) -> Drawn:
    """Compute Spearman's rho of each draw: ranks are those within the draw."""
    cluster = np.repeat(np.arange(len(data.names)), data.sizes)
    x, y = Levels(data.rows[:, 0]), Levels(data.rows[:, 1])

    def of(times: Counts) -> NDArray[np.float64]:
        weights = times[:, cluster]
        middle = (weights.sum(axis=1, keepdims=True) + 1) / 2
        first, second = x.mid_ranks(weights) - middle, y.mid_ranks(weights) - middle
        product, own_x, own_y = (
            (weights * left * right).sum(axis=1) for left, right in ((first, second), (first, first), (second, second))
        )
        scatter = np.sqrt(np.where(own_x > 0, own_x, np.nan)) * np.sqrt(np.where(own_y > 0, own_y, np.nan))
        return np.asarray(np.clip(product / scatter, -1.0, 1.0))

    return of_draws(of, clusters=len(data.names), width=max(1, 4 * len(cluster) // len(data.names)))


def drawn_kendall(data: Clustered) -> Drawn:
    """Compute Kendall's tau-b of each draw, from how clusters are ordered against each other."""
    cluster = np.repeat(np.arange(len(data.names)), data.sizes)
    x, y = Levels(data.rows[:, 0]), Levels(data.rows[:, 1])
    ordered = concordance(data, x.of_row, y.of_row)

    def of(times: Counts) -> NDArray[np.float64]:
        weights = times[:, cluster]
        surplus = ((times @ ordered) * times).sum(axis=1) / 2
        pairs = pairs_of(weights.sum(axis=1))
        apart_x, apart_y = pairs - x.tied_pairs(weights), pairs - y.tied_pairs(weights)
        scatter = np.sqrt(np.where(apart_x > 0, apart_x, np.nan)) * np.sqrt(np.where(apart_y > 0, apart_y, np.nan))
        return np.asarray(np.clip(surplus / scatter, -1.0, 1.0))

    return of_draws(of, clusters=len(data.names), width=max(1, 2 * len(cluster) // len(data.names)))


def concordance(data: Clustered, x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum over the pairs of rows of two clusters whether both scores order them alike (1) or not (-1)."""
    found = np.empty((len(data.names), len(data.names)))
    for number, (start, size) in enumerate(zip(data.starts, data.sizes, strict=True)):
        rows = slice(start, start + size)
        alike = np.sign(x[rows, None] - x[None]) * np.sign(y[rows, None] - y[None])
        found[number] = np.add.reduceat(alike.sum(axis=0), data.starts)
    return found


def pairs_of(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Count the pairs among so many."""
    return numbers * (numbers - 1) / 2


class Levels:
    """The different values of a score, in order, and which rows have which."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        """Sort the values once; draws change how often each row counts, never the order."""
        self.of_row = np.unique(values, return_inverse=True)[1].astype(np.int64)
        self.order = np.argsort(self.of_row, kind="stable")
        self.starts = np.flatnonzero(np.diff(self.of_row[self.order], prepend=-1))

    def counts(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Count the rows of each value, (draws, n_levels), from how often each row counts, (draws, n)."""
        return np.asarray(np.add.reduceat(weights[:, self.order], self.starts, axis=1))

    def mid_ranks(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give each row the mean rank of its value within the draw, (draws, n)."""
        counts = self.counts(weights)
        return (np.cumsum(counts, axis=1) - (counts - 1) / 2)[:, self.of_row]

    def tied_pairs(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Count the pairs of rows with the same value, (draws,)."""
        return np.asarray(pairs_of(self.counts(weights)).sum(axis=1))
