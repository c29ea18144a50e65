"""Agreement beyond what chance would give: Cohen's and Fleiss' kappa, Krippendorff's alpha."""

import math
from collections.abc import Hashable, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.arguments import argument_error, check_choice
from culturekit.metrics.statistics.rating_tables import agreeing_pairs, read_counts

__all__ = ["LEVELS", "Level", "cohen_kappa", "fleiss_kappa", "krippendorff_alpha"]

Level: TypeAlias = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


def cohen_kappa(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    *,
    weights: Literal["none", "linear", "quadratic"] = "none",
) -> float:
    """Compute Cohen's kappa of two annotators who answered the same items.

    Args:
        a: (n,): answers of the one.
        b: (n,): answers of the other, in the same order of items.
        weights: how much answers disagree: all alike, or by the distance of their ranks among the answers given.

    Returns:
        A number of at most 1; NaN where both gave one and the same answer to all items, since chance alone would.

    Raises:
        UsageError: an argument breaks its rule.
    """
    check_choice("weights", weights, ("none", "linear", "quadratic"))
    if len(a) != len(b) or len(a) == 0:
        raise argument_error("b", f"as long as a, and not empty; a has {len(a)}", len(b))
    choices, codes = np.unique(np.concatenate([np.asarray(a), np.asarray(b)]), return_inverse=True)
    together = np.zeros((len(choices), len(choices)))
    np.add.at(together, (codes[: len(a)], codes[len(a) :]), 1 / len(a))
    steps = np.abs(np.subtract.outer(np.arange(len(choices)), np.arange(len(choices)))).astype(np.float64)
    distance = {"none": (steps > 0).astype(np.float64), "linear": steps, "quadratic": steps**2}[weights]
    by_chance = float((distance * np.outer(together.sum(axis=1), together.sum(axis=0))).sum())
    return 1 - float((distance * together).sum()) / by_chance if by_chance > 0 else math.nan


def fleiss_kappa(counts: ArrayLike) -> float:
    """Compute Fleiss' kappa from how many annotators gave each answer to each item.

    Items may have different numbers of annotators: an item's agreement is over its own pairs, items count alike,
    and chance is the share of each answer among all. Items with a single answer are left out. With equal numbers
    this is Fleiss' (1971) formula.

    Args:
        counts: int, (n_items, n_choices), such as `rating_counts` gives.

    Returns:
        A number of at most 1; NaN where all answers are one and the same, or no item has two.
    """
    table = read_counts(counts)
    table = table[table.sum(axis=1) > 1]
    if len(table) == 0:
        return math.nan
    shares = table.sum(axis=0) / table.sum()
    by_chance = float((shares**2).sum())
    observed = float(agreeing_pairs(table).mean())
    return (observed - by_chance) / (1 - by_chance) if (shares > 0).sum() > 1 else math.nan


def krippendorff_alpha(ratings: ArrayLike, *, level: Level = "nominal") -> float:
    """Compute Krippendorff's alpha: one minus the disagreement observed over that expected by chance.

    Args:
        ratings: (n_annotators, n_items): texts (nominal only) or numbers; None and NaN are missing.
        level: `nominal` (same or not), `ordinal` (by rank) or `interval` (by distance).

    Returns:
        A number of at most 1; NaN where all ratings are the same, or no item has two.

    Raises:
        UsageError: an argument breaks its rule.
    """
    check_choice("level", level, LEVELS)
    items, values = pairable(ratings, level)
    if len(values) == 0 or (values == values[0]).all():
        return math.nan
    if level == "nominal":
        return alpha_of_codes(items, np.unique(values, return_inverse=True)[1])
    if level == "ordinal":
        from scipy.stats import rankdata

        # The squared distance of mid-ranks is exactly Krippendorff's ordinal metric.
        values = rankdata(values)
    return alpha_of_numbers(items, values.astype(np.float64))


def pairable(ratings: ArrayLike, level: Level) -> tuple[NDArray[np.int64], NDArray[np.generic]]:
    """List the ratings of items that have two or more, with their items' numbers from 0."""
    table = np.asarray(ratings)
    if table.ndim != 2:
        raise argument_error("ratings", "a table, (n_annotators, n_items)", f"shape {table.shape}")
    if table.dtype.kind == "O":
        missing = np.array([value is None or value != value for value in table.ravel()]).reshape(table.shape)
        numeric = all(isinstance(value, (int, float, np.number)) for value in table[~missing])
        table = np.where(missing, np.nan if numeric else "", table).astype(np.float64 if numeric else np.str_)
    else:
        missing = np.isnan(table) if table.dtype.kind == "f" else np.zeros(table.shape, dtype=bool)
    if table.dtype.kind not in "iufb" and level != "nominal":
        raise argument_error("ratings", f"numbers for level={level!r}", table.ravel()[:3].tolist())
    usable = ~missing & ((~missing).sum(axis=0) > 1)
    items, annotators = np.nonzero(usable.T)
    return np.unique(items, return_inverse=True)[1].astype(np.int64), table[annotators, items]


def alpha_of_codes(items: NDArray[np.int64], codes: NDArray[np.int64]) -> float:
    """Compute alpha for ratings that are the same or not."""
    cells, counts = np.unique(items * (codes.max() + 1) + codes, return_counts=True)
    raters = np.bincount(items)[cells // (codes.max() + 1)]
    total = len(codes)
    agreed = float((counts * (counts - 1) / (raters - 1)).sum()) / total
    frequency = np.bincount(codes).astype(np.float64)
    by_chance = float((frequency * (frequency - 1)).sum()) / (total * (total - 1))
    return 1 - (1 - agreed) / (1 - by_chance)


def alpha_of_numbers(items: NDArray[np.int64], values: NDArray[np.float64]) -> float:
    """Compute alpha for squared distances, from sums instead of all pairs."""
    shifts = values - values.mean()
    raters = np.bincount(items)
    means = np.bincount(items, weights=shifts) / raters
    within = (shifts - means[items]) ** 2
    observed = float((within / (raters - 1)[items] * raters[items]).sum())
    return 1 - observed * (len(values) - 1) / (len(values) * float((shifts**2).sum()))
