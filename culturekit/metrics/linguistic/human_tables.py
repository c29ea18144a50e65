"""Tables of human ratings: means and deviations over items, within each pool of annotators."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from culturekit.core.choices import CONFIDENCE, PERMUTATIONS
from culturekit.core.errors import argument_error
from culturekit.metrics.arguments import finite_vector
from culturekit.metrics.statistics.comparisons import Comparison, compare

# Two dialects of the same prompts: how much better pictures of the one fit than those of the other.


def dialect_gap(
    scores: Mapping[str, ArrayLike],
    prompts: Mapping[str, ArrayLike],
    *,
    standard: str = "SAE",
    other: str = "AAE",
    confidence: float = CONFIDENCE,
    resamples: int = PERMUTATIONS,
    rng: np.random.Generator,
) -> Comparison:
    """Compare the scores of pictures of two dialects, paired by prompt: the standard minus the other.

    Values of a prompt are averaged first, then the differences of common prompts: a prompt and its counterpart have
    the same name on both sides. The interval is t over prompts; p is that of a sign-flip permutation test. With
    CLIPScores, the score belongs to the encoder too: CLIP itself has read far more of the one dialect.

    Args:
        scores: dialect -> float, (n_images,): such as CLIPScores at scale 1, or 1 and 0 for right and wrong pictures.
        prompts: dialect -> (n_images,): the pair that each picture's prompt belongs to.
        standard: which dialect stands first.
        other: which is subtracted.
        confidence: of the interval.
        resamples: of the permutation test.
        rng: where the permutations come from.

    Raises:
        UsageError: an argument breaks its rule, or no prompt is common.
    """
    for dialect in (standard, other):
        if dialect not in scores or dialect not in prompts:
            raise argument_error("scores", f"given for {standard!r} and {other!r}, like prompts", sorted(scores))
    first, second = (finite_vector(f"scores[{name!r}]", scores[name]) for name in (standard, other))
    pairs = np.asarray(prompts[standard]), np.asarray(prompts[other])
    return compare(first, second, clusters=pairs, confidence=confidence, resamples=resamples, rng=rng)


NEEDED = ("item_id", "annotator", "annotator_region", "scheme", "criterion")

LABELS = ("model", "group")  # Columns that part a table further, where the annotations have them


def likert_table(annotations: pl.DataFrame) -> pl.DataFrame:
    """Average ratings per criterion and pool of annotators: mean and sample deviation (ddof = 1) over items.

    An item's score is the mean of its annotators in the pool; mean and deviation are over these scores. How far
    annotators of one item lie apart stands apart, in `within`. Pools are never merged.

    Args:
        annotations: item_id, annotator, annotator_region, scheme, criterion and value, as in ANNOTATIONS; columns
            `model` and `group`, where there are any, part the table: join them by item. Answers without a finite
            value are left out: a question that was not asked is missing, and never the lowest rating.

    Returns:
        scheme, criterion, pool, model and group where given, then `mean`, `sd` (null with a single item), `within`
        (the mean of the items' own deviations, over those with two annotators; null without any), `items`,
        `annotators`, `answers`; sorted.

    Raises:
        UsageError: a column is missing, or an annotator rated an item twice.
    """
    keys, scores = item_scores(annotations)
    score = pl.col("score").sort()
    table = scores.group_by(keys).agg(
        mean=score.mean(),
        sd=score.std(ddof=1),
        within=pl.col("own_sd").drop_nulls().sort().mean(),
        items=pl.len().cast(pl.UInt64),
        annotators=pl.col("names").explode(empty_as_null=False).n_unique().cast(pl.UInt64),
        answers=pl.col("answers").sum().cast(pl.UInt64),
    )
    return table.sort(keys, nulls_last=True)


def item_scores(annotations: pl.DataFrame) -> tuple[list[str], pl.DataFrame]:
    """Average the ratings of each item within each pool; give the columns that part the table, too."""
    keys = checked_keys(annotations, "value")
    rated = annotations.rename({"annotator_region": "pool"}).filter(pl.col("value").is_finite().fill_null(value=False))
    repeated = rated.filter(rated.select(*keys, "item_id", "annotator").is_duplicated())
    if repeated.height:
        raise argument_error(
            "annotations", "one rating per annotator, item and criterion", repeated.row(0, named=True)["item_id"]
        )
    value = pl.col("value").sort()
    return keys, rated.group_by(*keys, "item_id").agg(
        score=value.mean(), own_sd=value.std(ddof=1), names=pl.col("annotator"), answers=pl.len()
    ).sort(*keys, "item_id", nulls_last=True)


def relevance_rates(annotations: pl.DataFrame) -> pl.DataFrame:
    """Give the share of each choice per criterion and pool: of an item's annotators first, then over items.

    Args:
        annotations: as for `likert_table`, with `choice` instead of `value`: such as yes, no and maybe.

    Returns:
        scheme, criterion, pool, model and group where given, `choice`, `rate`, `items`, `answers`; sorted. The rates
        of a criterion's choices sum to 1 in each pool.
    """
    keys = checked_keys(annotations, "choice")
    answered = annotations.rename({"annotator_region": "pool"}).filter(pl.col("choice").is_not_null())
    chosen = answered.group_by(*keys, "item_id", "choice").agg(count=pl.len())
    per_item = chosen.with_columns(share=pl.col("count") / pl.col("count").sum().over(*keys, "item_id"))
    totals = answered.group_by(keys).agg(items=pl.col("item_id").n_unique().cast(pl.UInt64))
    rates = per_item.group_by(*keys, "choice").agg(
        total=pl.col("share").sort().sum(), answers=pl.col("count").sum().cast(pl.UInt64)
    )
    table = rates.join(totals, on=keys, nulls_equal=True).with_columns(rate=pl.col("total") / pl.col("items"))
    return table.select(*keys, "choice", "rate", "items", "answers").sort(*keys, "choice", nulls_last=True)


def checked_keys(annotations: pl.DataFrame, answer: str) -> list[str]:
    """Refuse annotations that lack a column; give the columns that part a table."""
    wanted: Sequence[str] = (*NEEDED, answer)
    missing = [name for name in wanted if name not in annotations.columns]
    if missing:
        raise argument_error("annotations", f"a frame with the columns {', '.join(wanted)}", annotations.columns)
    return ["scheme", "criterion", "pool", *(name for name in LABELS if name in annotations.columns)]
