"""Ratings by model, concept and country, in the shape of the CUBE paper's Table 3; shares of choices beside them."""

from collections.abc import Callable, Sequence

import polars as pl

from culturekit.annotate.care import FLAGS
from culturekit.metrics.linguistic.human_tables import likert_table, relevance_rates
from culturekit.metrics.scoring.rating_pools import PoolsBy, pool_of
from culturekit.records.schemas import CHOICE_TABLE, RATING_TABLE

__all__ = ["BELOW", "careful", "choice_table", "in_pools", "named", "rating_table"]

BELOW = (2, 3)
"""A cell with a mean below one of these is marked with the first of them."""

PLACE = ("concept", "country")


def careful(annotations: pl.DataFrame, keep: Sequence[str]) -> tuple[pl.DataFrame, dict[str, int]]:
    """Leave out flagged answers; count the answers that have each flag, those with several under the first.

    Args:
        annotations: conforms to ANNOTATIONS.
        keep: flags that do no harm.
    """
    rest, counts = annotations, {}
    for flag in (flag for flag in FLAGS if flag not in keep):
        flagged = pl.col("flags").list.contains(flag)
        counts[f"flagged {flag}"] = rest.filter(flagged).height
        rest = rest.filter(~flagged)
    return rest, counts


def in_pools(annotations: pl.DataFrame, by: PoolsBy) -> pl.DataFrame:
    """Put the name of each answer's pool in the place of the annotator's region, where pools are not regions."""
    return annotations.with_columns(annotator_region=pool_of(by))


def named(annotations: pl.DataFrame, items: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Say of each answer which model, concept and country it is about; count those of unknown items."""
    known = annotations.join(items, on="item_id", how="inner")
    return known.with_columns(pl.col("model").fill_null("(no model)")), annotations.height - known.height


def rating_table(answers: pl.DataFrame) -> pl.DataFrame:
    """Average ratings of each cell, and of each model and country over all concepts.

    An item's score is the mean of its annotators in a pool; mean and deviation are over the items of the cell.
    """
    numbers = answers.filter(pl.col("value").is_not_null())
    table = by_cell(numbers, likert_table)
    if table.is_empty():
        return pl.DataFrame(schema=RATING_TABLE.schema)
    mark = pl.coalesce(*(pl.when(pl.col("mean") < level).then(pl.lit(f"below {level}")) for level in BELOW))
    scales = ~pl.col("criterion").str.contains("/", literal=True)
    marked = table.with_columns(mark=pl.when(scales).then(mark).cast(pl.String))
    return marked.select(list(RATING_TABLE.schema)).sort(RATING_TABLE.key)


def choice_table(answers: pl.DataFrame) -> pl.DataFrame:
    """Give the share of each choice in each cell: of an item's annotators first, then over items."""
    words_only = pl.col("value").is_null().all().over("scheme", "criterion")
    table = by_cell(answers.filter(words_only, pl.col("choice").is_not_null()), relevance_rates)
    if table.is_empty():
        return pl.DataFrame(schema=CHOICE_TABLE.schema)
    return table.select(list(CHOICE_TABLE.schema)).sort(CHOICE_TABLE.key)


def by_cell(answers: pl.DataFrame, table: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """Make the table of every concept and country, and of every country with all its concepts together."""
    if answers.is_empty():
        return pl.DataFrame()
    own = answers.drop("group")
    return pl.concat(
        [
            table(cell.drop(*PLACE)).with_columns(
                pl.lit(concept, pl.String).alias("concept"),
                pl.lit(country, pl.String).alias("country"),
            )
            for part, over_all in ((own, False), (own.with_columns(concept=pl.lit(None, pl.String)), True))
            for cell in part.partition_by(PLACE, maintain_order=True)
            for concept, country in [cell.select(PLACE).row(0)]
            if over_all or concept is not None
        ]
    )
