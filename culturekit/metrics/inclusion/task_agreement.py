"""How often annotators agree: on triplets (more similar, more appealing) and on single images (Task 2)."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import polars as pl

from culturekit.metrics.inclusion.region_names import with_region_codes
from culturekit.metrics.inclusion.region_rates import TARGETS, check_columns
from culturekit.metrics.statistics.chance_corrected import fleiss_kappa

__all__ = ["CRITERIA", "QUESTIONS", "item_agreement", "task1_answers", "task2_agreement", "task2_answers",
           "triplet_agreement"]  # fmt: skip

CRITERIA = {"similarity": "similar_id", "appeal": "appealing_id"}
"""What annotators compare two images by, and the column with their choice."""

QUESTIONS = ("shown", *TARGETS)
"""What Task 2 asks: is the object shown; do the object, and the background, name the image's own region."""

LOCATION = "annotator_loc"

Row: TypeAlias = dict[str, Any]


def triplet_agreement(task1: pl.DataFrame, *, by: Sequence[str]) -> pl.DataFrame:
    """Measure how often annotators of the same triplet choose the same image.

    Where `by` names `annotator_loc`, the annotators of each location are a pool of their own: rows `within` compare
    them with each other, rows `across` compare each of them with the annotators elsewhere. Without it, rows `all`
    compare every annotator with every other, which is what the paper plots; with one annotator per location that is
    agreement between locations, and never within one.

    Args:
        task1: conforms to TASK1.
        by: columns that part the annotations, such as `source`, `region` and `annotator_loc`; may be none.

    Returns:
        The columns of `by`, then `criterion` (`similarity` or `appeal`), `pairs` (`all`, `within` or `across`),
        `pairwise` (the mean over triplets of the share of pairs that agree), `unanimous` (the share of triplets on
        which all pairs agree) and `n` (triplets with at least one pair). Sorted; rows with no triplet are left out.

    Raises:
        UsageError: a column is missing.
    """
    answers = task1_answers(task1, by=by)
    items = item_agreement(answers, by=by, item="triplet_id", question="criterion")
    return summed_up(items, [*by, "criterion", "pairs"])


def task2_agreement(task2: pl.DataFrame, *, by: Sequence[str] = ("region",)) -> pl.DataFrame:
    """Measure how often annotators of the same image give the same answer, as `triplet_agreement` does.

    Args:
        task2: conforms to TASK2. An image without an own region counts for `shown` only.
        by: columns that part the annotations, such as `region`, `object` and `annotator_loc`.

    Returns:
        The columns of `by`, then `question` (`shown`, `object` or `background`), `pairs`, `pairwise`, `unanimous`,
        `kappa` (Fleiss' kappa; null across pools, and where it is not defined) and `n` (images). Sorted.

    Raises:
        UsageError: a column is missing, or a region is not one of the study's.
    """
    answers = task2_answers(task2, by=by)
    items = item_agreement(answers, by=by, item="img_path", question="question")
    table = summed_up(items, [*by, "question", "pairs"])
    kappas = [kappa_of(answers, row, by) if row["pairs"] != "across" else None for row in table.iter_rows(named=True)]
    return table.with_columns(kappa=pl.Series(kappas, dtype=pl.Float64)).select(pl.exclude("n"), "n")


def task1_answers(task1: pl.DataFrame, *, by: Sequence[str]) -> pl.DataFrame:
    """Write one row per annotation and criterion that was answered: the `choice`."""
    check_columns("task1", task1, (*by, "triplet_id", "annotator_id", LOCATION, *CRITERIA.values()))
    return pl.concat(
        task1.filter(pl.col(column).is_not_null()).with_columns(criterion=pl.lit(criterion), choice=pl.col(column))
        for criterion, column in CRITERIA.items()
    )


def task2_answers(task2: pl.DataFrame, *, by: Sequence[str]) -> pl.DataFrame:
    """Write one row per annotation and question that has an answer: the `choice`, yes or no."""
    check_columns("task2", task2, (*by, "img_path", "annotator_id", LOCATION, "shown", "region", *TARGETS.values()))
    coded = with_region_codes(task2)
    own = coded.filter(pl.col("own").is_not_null())
    parts = [coded.with_columns(question=pl.lit("shown"), choice=pl.col("shown").cast(pl.String))]
    parts += [
        own.with_columns(question=pl.lit(target), choice=pl.col(column).list.contains(pl.col("own")).cast(pl.String))
        for target, column in TARGETS.items()
    ]
    return pl.concat(parts)


def item_agreement(answers: pl.DataFrame, *, by: Sequence[str], item: str, question: str) -> pl.DataFrame:
    """Give the share of agreeing pairs of each item: the columns of `by`, the item, the question, `pairs`, `share`."""
    keys = [*dict.fromkeys([*by, question, item])]
    if LOCATION not in by:
        return with_shares(votes(answers, keys), "all")
    inside = votes(answers, keys)
    elsewhere = [name for name in keys if name != LOCATION]
    return pl.concat([with_shares(inside, "within"), across(inside, votes(answers, elsewhere), keys, elsewhere)])


def votes(answers: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Count answers and equal answers: `total` and `count` per choice."""
    counted = answers.group_by(*keys, "choice").agg(count=pl.len().cast(pl.Int64))
    return counted.with_columns(total=pl.col("count").sum().over(keys))


def with_shares(counted: pl.DataFrame, pairs: str) -> pl.DataFrame:
    """Give the share of pairs of different annotators who agree; items with one annotator are left out."""
    keys = [name for name in counted.columns if name not in ("choice", "count", "total")]
    agreeing = (pl.col("count") * (pl.col("count") - 1)).sum() / (pl.col("total") * (pl.col("total") - 1)).first()
    several = counted.filter(pl.col("total") > 1)
    return several.group_by(keys).agg(share=agreeing).with_columns(pairs=pl.lit(pairs)).select(*keys, "pairs", "share")


def across(inside: pl.DataFrame, everybody: pl.DataFrame, keys: Sequence[str], shared: Sequence[str]) -> pl.DataFrame:
    """Give the share of pairs of one annotator here and one elsewhere who agree."""
    both = inside.join(everybody, on=[*shared, "choice"], suffix="_all", nulls_equal=True)
    others = (pl.col("total_all") - pl.col("total")).first()
    agreeing = (pl.col("count") * (pl.col("count_all") - pl.col("count"))).sum()
    shares = both.group_by(keys).agg(agreeing=agreeing, pairs_made=pl.col("total").first() * others)
    met = shares.filter(pl.col("pairs_made") > 0)
    return met.select(*keys, pairs=pl.lit("across"), share=pl.col("agreeing") / pl.col("pairs_made"))


def summed_up(items: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Average items: shares are sorted first, so that the order of the rows does not matter."""
    share = pl.col("share").sort()
    table = items.group_by(keys).agg(pairwise=share.mean(), unanimous=(share == 1).mean(), n=pl.len().cast(pl.UInt64))
    return table.sort(keys, nulls_last=True)


def kappa_of(answers: pl.DataFrame, row: Row, by: Sequence[str]) -> float | None:
    """Compute Fleiss' kappa of the answers in one cell."""
    cell = answers.filter([pl.col(name).eq_missing(row[name]) for name in (*by, "question")])
    yes = pl.col("choice") == "true"
    counts = cell.group_by("img_path").agg(yes=yes.sum(), no=(~yes).sum()).sort("img_path")
    kappa = fleiss_kappa(counts.select("yes", "no").to_numpy())
    return None if math.isnan(kappa) else kappa
