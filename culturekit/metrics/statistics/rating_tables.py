"""Ratings of items by several people: how many gave which answer, and how often they agree."""

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.arguments import argument_error

__all__ = [
    "agreeing_pairs",
    "counts_of",
    "pairwise_agreement",
    "rating_counts",
    "read_counts",
    "unanimous_agreement",
]


def rating_counts(items: Sequence[Hashable], choices: Sequence[Hashable]) -> NDArray[np.int64]:
    """Count how many annotators gave each answer to each item, int64 (n_items, n_choices).

    Items and choices stand in sorted order; each answer is one row of the input.

    Raises:
        UsageError: the two are not equally long, or empty.
    """
    if len(items) != len(choices) or len(items) == 0:
        raise argument_error("choices", f"one per item, at least one; there are {len(items)} items", len(choices))
    rows = np.unique(np.asarray(items), return_inverse=True)[1]
    columns = np.unique(np.asarray(choices), return_inverse=True)[1]
    counts = np.zeros((rows.max() + 1, columns.max() + 1), dtype=np.int64)
    np.add.at(counts, (rows, columns), 1)
    return counts


def counts_of(table: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count answers, (most answers, n_items), at least one an item, as (n_items, n_choices)."""
    places, items = np.nonzero(np.isfinite(table))
    return rating_counts(items.tolist(), table[places, items].tolist())


def pairwise_agreement(counts: ArrayLike) -> float:
    """Average over items the share of pairs of annotators who gave the same answer.

    Args:
        counts: int, (n_items, n_choices): how many annotators gave each answer to each item. Items with a single
            answer say nothing of agreement and are left out.

    Returns:
        A share in [0, 1]; NaN where no item has two answers.
    """
    shares = agreeing_pairs(read_counts(counts))
    known = shares[np.isfinite(shares)]
    return float(known.mean()) if len(known) else math.nan


def unanimous_agreement(counts: ArrayLike) -> float:
    """Give the share of items on which all annotators gave the same answer, as for `pairwise_agreement`."""
    shares = agreeing_pairs(read_counts(counts))
    known = shares[np.isfinite(shares)]
    return float((known == 1).mean()) if len(known) else math.nan


def agreeing_pairs(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the share of agreeing pairs of each item, float64 (n_items,); NaN with fewer than two answers."""
    answers = counts.sum(axis=1)
    pairs = answers * (answers - 1)
    agreeing = (counts * (counts - 1)).sum(axis=1)
    return np.asarray(np.divide(agreeing, pairs, out=np.full(len(counts), np.nan), where=pairs > 0))


def read_counts(counts: ArrayLike) -> NDArray[np.float64]:
    """Read whole numbers of answers, (n_items, n_choices)."""
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        raise argument_error("counts", "a table, (n_items, n_choices)", f"shape {table.shape}")
    if not (np.isfinite(table).all() and (table >= 0).all() and (table == np.floor(table)).all()):
        raise argument_error("counts", "whole numbers of at least 0", table[~((table >= 0) & (table % 1 == 0))][:3])
    return table
