"""Raters whose answers are too alike to be of two people: one is a copy, which would count twice everywhere."""

import math
from itertools import combinations

import polars as pl

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
    said = pl.concat([both.select("criterion", "said"), both.select("criterion", said="said_b")])
    shares = said.group_by("criterion", "said").len().with_columns(n=pl.col("len").sum().over("criterion"))
    return 1 - float((shares["len"] ** 2 / shares["n"]).sum()) / said.height


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
