"""Agreement of many draws of items at once: the same numbers as item by item, from counts of answers."""

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.statistics.chance_corrected import Level
from culturekit.metrics.statistics.draws import Counts, Drawn, OfCounts, of_draws
from culturekit.metrics.statistics.rating_tables import agreeing_pairs

__all__ = ["MOST_CHOICES", "drawn_alpha", "drawn_cohen", "drawn_fleiss", "drawn_pairwise", "drawn_unanimous"]

MOST_CHOICES = 40
"""With more different answers, a table of answers by answers is no shortcut."""


def drawn_pairwise(counts: NDArray[np.float64]) -> Drawn:
    """Average the agreeing pairs of the items of each draw; `counts` is (n_items, n_choices), two answers an item."""
    shares = agreeing_pairs(counts)
    return lambda drawn: shares[drawn].mean(axis=-1)


def drawn_unanimous(counts: NDArray[np.float64]) -> Drawn:
    """Give the share of items of each draw that all annotators answered alike."""
    alike = (agreeing_pairs(counts) == 1).astype(np.float64)
    return lambda drawn: alike[drawn].mean(axis=-1)


def drawn_fleiss(counts: NDArray[np.float64]) -> Drawn:
    """Compute Fleiss' kappa of each draw, as `fleiss_kappa` does."""
    observed = drawn_pairwise(counts)
    by_chance = of_draws(lambda times: chance_of(times @ counts), clusters=len(counts))

    def of(drawn: NDArray[np.int64]) -> NDArray[np.float64]:
        chance = by_chance(drawn)
        return (observed(drawn) - chance) / (1 - chance)

    return of


def chance_of(answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the chance that two answers are alike, from counts (draws, n_choices); NaN where all are the same."""
    shares = answers / answers.sum(axis=1, keepdims=True)
    several = (answers > 0).sum(axis=1) > 1
    return np.where(several, (shares**2).sum(axis=1), np.nan)


def drawn_alpha(counts: NDArray[np.float64], choices: NDArray[np.float64], *, level: Level) -> Drawn:
    """Compute Krippendorff's alpha of each draw, as `krippendorff_alpha` does.

    Args:
        counts: (n_items, n_choices): how many annotators gave each answer; every item has two answers or more.
        choices: (n_choices,): the answers as numbers, ascending.
        level: how answers are compared.
    """
    statistic = nominal(counts) if level == "nominal" else numbers(counts, choices, ranked=level == "ordinal")
    return of_draws(statistic, clusters=len(counts), width=2)


def nominal(counts: NDArray[np.float64]) -> OfCounts:
    """Compute alpha of answers that are the same or not."""
    raters = counts.sum(axis=1)
    agreed = (counts * (counts - 1)).sum(axis=1) / (raters - 1)

    def of(times: Counts) -> NDArray[np.float64]:
        answers = times @ counts
        total = answers.sum(axis=1)
        by_chance = (answers * (answers - 1)).sum(axis=1) / (total * (total - 1))
        several = (answers > 0).sum(axis=1) > 1
        by_chance = np.where(several, by_chance, np.nan)
        return np.asarray(1 - (1 - times @ agreed / total) / (1 - by_chance))

    return of


def numbers(counts: NDArray[np.float64], choices: NDArray[np.float64], *, ranked: bool) -> OfCounts:
    """Compute alpha of squared distances of numbers, or of the mid-ranks that they have in each draw."""
    raters = counts.sum(axis=1)
    outer = counts[:, :, None] * counts[:, None, :] / raters[:, None, None]
    spread = np.einsum("ic,cd->icd", counts, np.eye(len(choices))) - outer
    within = (spread * (raters / (raters - 1))[:, None, None]).reshape(len(counts), -1)

    def of(times: Counts) -> NDArray[np.float64]:
        answers = times @ counts
        total = answers.sum(axis=1)
        scores = mid_ranks(answers) if ranked else np.broadcast_to(choices, answers.shape)
        shifts = scores - (answers * scores).sum(axis=1, keepdims=True) / total[:, None]
        table = (times @ within).reshape(len(times), len(choices), len(choices))
        observed = np.einsum("bc,bcd,bd->b", shifts, table, shifts)
        expected = (answers * shifts**2).sum(axis=1)
        several = (answers > 0).sum(axis=1) > 1
        return np.asarray(1 - observed * (total - 1) / (total * np.where(several, expected, np.nan)))

    return of


def mid_ranks(answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the mean rank of each answer among all, from counts (draws, n_choices) in ascending order of answers."""
    return np.asarray(np.cumsum(answers, axis=1) - (answers - 1) / 2)


def drawn_cohen(pairs: NDArray[np.float64]) -> Drawn:
    """Compute Cohen's kappa of each draw of the items that two annotators answered, (2, n_items)."""
    choices, codes = np.unique(pairs, return_inverse=True)
    first, second = np.eye(len(choices))[codes.reshape(pairs.shape)]
    alike = (pairs[0] == pairs[1]).astype(np.float64)

    def of(times: Counts) -> NDArray[np.float64]:
        total = times.sum(axis=1, keepdims=True)
        by_chance = 1 - ((times @ first / total) * (times @ second / total)).sum(axis=1)
        apart = 1 - (times @ alike) / total[:, 0]
        known = ((times @ first > 0) | (times @ second > 0)).sum(axis=1) > 1
        return np.asarray(1 - apart / np.where(known, by_chance, np.nan))

    return of_draws(of, clusters=pairs.shape[1])
