"""Agreement beyond what chance would give: Cohen's and Fleiss' kappa, Krippendorff's alpha.

The functions `drawn_...` give the same numbers for many draws of items at once, from counts of answers.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from culturekit.core.choices import CONFIDENCE
from culturekit.core.errors import argument_error, check_choice
from culturekit.metrics.arguments import check_confidence
from culturekit.metrics.statistics.intervals import (
    Counts,
    Drawn,
    Interval,
    Keys,
    OfCounts,
    cluster_codes,
    clustered_share,
    of_draws,
)

# Ratings of items by several people: how many gave which answer, and how often they agree.


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


Level: TypeAlias = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")

# With more different answers, a table of answers by answers is no shortcut; words are names, not categories
MOST_CHOICES = 40


def cohen_kappa(
    a: Sequence[Hashable], b: Sequence[Hashable], *, weights: Literal["none", "linear", "quadratic"] = "none"
) -> float:
    """Compute Cohen's kappa of two annotators who answered the same items.

    Args:
        a: (n,): answers of the one.
        b: (n,): answers of the other, in the same order of items.
        weights: how much answers disagree: all alike, or by the distance of their ranks among the answers given.

    Returns:
        A number of at most 1; NaN where both gave one and the same answer to all items, since chance alone would.
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
    answered = answers_of(counts)
    by_chance = of_draws(lambda times: chance_of(answered(times)), clusters=len(counts))

    def of(drawn: NDArray[np.int64]) -> NDArray[np.float64]:
        chance = by_chance(drawn)
        return (observed(drawn) - chance) / (1 - chance)

    return of


def answers_of(counts: NDArray[np.float64]) -> Callable[[Counts], NDArray[np.float64]]:
    """Count the answers of draws, (draws, n_choices): sums of whole numbers, the same in any order.

    An item has few answers: where choices are many, as names are, nearly all counts are zeros, and are left out.
    """
    if counts.shape[1] <= MOST_CHOICES:
        return lambda times: times @ counts
    from scipy.sparse import csr_array

    by_choice = csr_array(counts.T)
    return lambda times: np.asarray((by_choice @ times.T).T)


def chance_of(answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the chance that two answers are alike, from counts (draws, n_choices); NaN where all are the same."""
    shares = answers / answers.sum(axis=1, keepdims=True)
    several = (answers > 0).sum(axis=1) > 1
    return np.where(several, (shares**2).sum(axis=1), np.nan)


def drawn_alpha(counts: NDArray[np.float64], choices: NDArray[np.float64], *, level: Level) -> Drawn:
    """Compute Krippendorff's alpha of each draw, as `krippendorff_alpha` does.

    Counts are (n_items, n_choices), every item with two answers or more; choices are the answers as ascending numbers.
    """
    statistic = nominal(counts) if level == "nominal" else numbers(counts, choices, ranked=level == "ordinal")
    return of_draws(statistic, clusters=len(counts), width=2)


def nominal(counts: NDArray[np.float64]) -> OfCounts:
    """Compute alpha of answers that are the same or not."""
    raters = counts.sum(axis=1)
    agreed = (counts * (counts - 1)).sum(axis=1) / (raters - 1)
    answered = answers_of(counts)

    def of(times: Counts) -> NDArray[np.float64]:
        answers = answered(times)
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


# How far two labellings of the same images agree: the share that is equal, and what is beyond chance.

Codes = NDArray[np.int64]


def equal_share(a: ArrayLike, b: ArrayLike, *, batches: Keys, confidence: float = CONFIDENCE) -> Interval:
    """Give the share of images to which both labellings give the same label, with Wilson's interval.

    Images of a batch were made together and are not independent, so the interval is that of as many independent
    images as would scatter as the batches do.
    """
    one, other = coded(a, b)
    return clustered_share((one == other).astype(np.float64), {"batch": batches}, confidence=confidence)


def kappa_interval(a: ArrayLike, b: ArrayLike, *, batches: Keys, confidence: float = CONFIDENCE) -> Interval:
    """Give Cohen's kappa of two labellings, with a t interval from the jackknife over batches.

    Returns:
        Kappa is NaN where both give one and the same label to every image. There are no limits with fewer than two
        batches, and where leaving any batch out changes nothing, since then nothing says how much kappa scatters.
    """
    from scipy.special import stdtrit

    check_confidence(confidence)
    one, other = coded(a, b)
    batch = cluster_codes("batches", batches, length=len(one))
    number = int(batch.max()) + 1
    value = float(kappas(one, other, np.zeros(len(one), np.int64), left_out=False)[0])
    unknown = Interval(value, math.nan, math.nan, len(one), "population")
    if number < 2 or math.isnan(value):
        return unknown
    without = kappas(one, other, batch, left_out=True)
    spread = (number - 1) / number * float(((without - without.mean()) ** 2).sum())
    if not spread > 0:
        return unknown
    margin = float(stdtrit(number - 1, (1 + confidence) / 2)) * math.sqrt(spread)
    return Interval(value, max(-1.0, value - margin), min(1.0, value + margin), len(one), "population")


def coded(a: ArrayLike, b: ArrayLike) -> tuple[Codes, Codes]:
    """Number the labels of both, the same label with the same number."""
    one, other = np.asarray(a), np.asarray(b)
    if one.ndim != 1 or one.shape != other.shape or len(one) == 0:
        raise argument_error("b", f"as long as a, and not empty; a has shape {one.shape}", f"shape {other.shape}")
    codes = np.unique(np.concatenate([one, other]), return_inverse=True)[1].astype(np.int64)
    return codes[: len(one)], codes[len(one) :]


def kappas(a: Codes, b: Codes, batch: Codes, *, left_out: bool) -> NDArray[np.float64]:
    """Compute kappa of each batch, or with `left_out` of all images but those of each batch; float64 (n_batches,)."""
    number, labels = int(batch.max()) + 1, int(max(a.max(), b.max())) + 1
    size: NDArray[np.float64] = np.bincount(batch).astype(np.float64)
    equal: NDArray[np.float64] = np.bincount(batch, weights=a == b, minlength=number).astype(np.float64)
    cells = np.unique(np.concatenate([batch * labels + a, batch * labels + b]))
    item, label = cells // labels, cells % labels
    of_a = counts(cells, batch * labels + a)
    of_b = counts(cells, batch * labels + b)
    chance: NDArray[np.float64] = np.bincount(item, weights=of_a * of_b, minlength=number).astype(np.float64)
    if left_out:
        all_a = np.bincount(a, minlength=labels).astype(np.float64)
        all_b = np.bincount(b, minlength=labels).astype(np.float64)
        crossed = np.bincount(item, weights=of_a * all_b[label] + of_b * all_a[label], minlength=number)
        chance = float(all_a @ all_b) - crossed + chance
        size, equal = len(a) - size, float((a == b).sum()) - equal
    expected = chance / size**2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(expected < 1, (equal / size - expected) / (1 - expected), np.nan))


def counts(cells: Codes, found: Codes) -> NDArray[np.float64]:
    """Count how often each cell, of sorted ones, is found."""
    return np.bincount(np.searchsorted(cells, found), minlength=len(cells)).astype(np.float64)


FALSE_ALARM = 0.01  # How often, at most, two of a study's honest raters are taken for one

# How often two people who answer by themselves differ, at least, unless the others hardly differ from them either
LEAST_APART = 0.05

FEWEST_COMMON = 20  # Common answers below which nothing is said of two raters


def copied_raters(answers: pl.DataFrame) -> dict[str, str]:
    """Find the raters who are copies of another, with whose; of several alike the first by name is no copy.

    Honest raters differ in `LEAST_APART` of their answers, or half as often as the others differ from these two (for
    want of others, as chance would have it). Two are one where so few differences as theirs have a chance below
    `FALSE_ALARM` over all pairs, by Chernoff's bound; or where they are as few, and the times of the answers the same
    so often. Raters of easy items, whose others agree as well, are therefore never one.

    Args:
        answers: annotator, question (item and criterion in one text), criterion, said, seconds (null if not known).
    """
    known = answers.drop_nulls("said").unique(["annotator", "question"], keep="first", maintain_order=True)
    known = known.with_columns(asked=pl.len().over("question"), alike=pl.len().over("question", "said"))
    parts = {
        part["annotator"][0]: part for part in known.sort("annotator").partition_by("annotator", maintain_order=True)
    }
    chance = FALSE_ALARM / max(math.comb(len(parts), 2), 1)
    of: dict[str, str] = {}
    for one, other in combinations(parts, 2):
        if one not in of and other not in of and _are_one(parts[one], parts[other], chance):
            of[other] = one
    return of


def _are_one(one: pl.DataFrame, other: pl.DataFrame, chance: float) -> bool:
    both = one.join(other, on="question", suffix="_b")
    apart = int((both["said"] != both["said_b"]).sum())
    if both.height < FEWEST_COMMON or apart >= LEAST_APART * both.height:
        return False
    others = int((both["asked"] - 2).sum())
    same = both["said"] == both["said_b"]
    agreeing = int((both["alike"] - 1 - same.cast(pl.UInt32)).sum())
    differing = 1 - agreeing / others if others else _by_chance(both)
    expected = both.height * min(LEAST_APART, differing / 2)
    return _so_few(apart, expected) < chance or (differing > 0 and _same_times(both) < chance)


def _by_chance(both: pl.DataFrame) -> float:
    """Give how often answers to one criterion differ that are drawn from all that these two gave to it."""
    answers = pl.concat([both.select("criterion", "said"), both.select("criterion", said="said_b")])
    shares = answers.group_by("criterion", "said").len().with_columns(n=pl.col("len").sum().over("criterion"))
    return 1 - float((shares["len"] ** 2 / shares["n"]).sum()) / answers.height


def _so_few(found: int, expected: float) -> float:
    """Bound the chance of so few events, which are independent, where more are expected."""
    if found >= expected:
        return 1.0
    return math.exp(found - expected + (found * math.log(expected / found) if found else 0.0))


def _same_times(both: pl.DataFrame) -> float:
    """Bound the chance that the times of so many of the answers are the same."""
    timed = both.select(pl.col("question", "seconds", "seconds_b")).drop_nulls()
    n, same = timed.height, int((timed["seconds"] == timed["seconds_b"]).sum())
    counts = timed.group_by(seconds="seconds").len().join(timed.group_by(seconds="seconds_b").len(), on="seconds")
    elsewhere = (float((counts["len"] * counts["len_right"]).sum()) - same + 1) / (n * (n - 1) + 1)
    if n < FEWEST_COMMON or same <= n * max(elsewhere, 0.5):
        return 1.0
    share = same / n
    off = (1 - share) * math.log((1 - share) / (1 - elsewhere)) if share < 1 else 0.0
    return math.exp(-n * (share * math.log(share / elsewhere) + off))
