"""Annotations by scheme, criterion and pool: who answered what, never merged over pools."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.metrics.arguments import check_choice
from culturekit.metrics.scoring.careful_answers import careful_answers

__all__ = ["POOLS_BY", "InRegion", "OutOfRegion", "PoolRatings", "PoolsBy", "pool_of", "pooled_ratings"]

PoolsBy: TypeAlias = Literal["region", "in-region", "recruitment"]
InRegion: TypeAlias = Annotated[int, Field(ge=0, le=50, description="Annotators of an item's own region.")]
OutOfRegion: TypeAlias = Annotated[int, Field(ge=0, le=50, description="Annotators of other regions.")]
"""How many people of either kind judge an item."""

POOLS_BY: tuple[PoolsBy, ...] = ("region", "in-region", "recruitment")

RECRUITMENT = "recruitment:"
"""How the flag begins that says where an annotator was found, such as `recruitment:prolific`."""

UNKNOWN = "unknown"

IN_WORDS = "answers in words to a question that others answered with numbers"


@dataclass(frozen=True, slots=True)
class PoolRatings:
    """The answers of one pool to one criterion.

    Attributes:
        scheme: of the form that was filled in.
        criterion: the question.
        pool: the name of the pool.
        answers: item, annotator, value, choice: sorted; either all have a value, or all have a choice only.
    """

    scheme: str
    criterion: str
    pool: str
    answers: pl.DataFrame

    @property
    def numeric(self) -> bool:
        """Tell whether answers are numbers, or choices among words."""
        return self.answers["value"].null_count() == 0

    def item_means(self, choice: str | None = None) -> dict[str, float]:
        """Average the answers to each item; of a choice, give the share that chose it."""
        score = pl.col("value") if choice is None else (pl.col("choice") == choice).cast(pl.Float64)
        means = self.answers.group_by("item_id").agg(score.sort().mean().alias("mean")).sort("item_id")
        return dict(means.iter_rows())

    def table(self) -> NDArray[np.float64]:
        """Give the answers item by item, (most answers, n_items), NaN where an item has fewer; choices as codes."""
        codes = pl.col("value") if self.numeric else pl.col("choice").rank("dense").cast(pl.Float64)
        items = self.answers.select("item_id", code=codes).sort("item_id", "code").group_by(
            "item_id", maintain_order=True
        ).agg("code")  # fmt: skip
        lists = items["code"].to_list()
        table = np.full((max(map(len, lists)), len(lists)), np.nan)
        for number, answers in enumerate(lists):
            table[: len(answers), number] = answers
        return table

    def of_annotators(self) -> NDArray[np.float64] | None:
        """Give the answers of two annotators to the items both answered, (2, n); None where there are not two."""
        names = sorted(self.answers["annotator"].unique())
        if len(names) != 2:
            return None
        codes = pl.col("value") if self.numeric else pl.col("choice").rank("dense").cast(pl.Float64)
        coded = self.answers.select("item_id", "annotator", code=codes)
        first, second = (coded.filter(pl.col("annotator") == name) for name in names)
        both = first.join(second, on="item_id", suffix="_b").sort("item_id")
        return both.select("code", "code_b").to_numpy().T if both.height else None


def pooled_ratings(
    annotations: pl.DataFrame, *, by: PoolsBy, left_out: Counter[str] | None = None
) -> tuple[list[PoolRatings], int]:
    """Part annotations by scheme, criterion and pool; count the answers that are neither a value nor a choice.

    Raises:
        UsageError: the table does not conform, or `by` is not one of its choices.
    """
    check_choice("by", by, POOLS_BY)
    known = pl.when(pl.col("value").is_finite()).then("value")
    table = careful_answers(annotations, left_out).with_columns(pool=pool_of(by), value=known)
    answered = table.filter(pl.col("value").is_not_null() | pl.col("choice").is_not_null())
    ordered = answered.sort("scheme", "criterion", "pool", "item_id", "annotator")
    return list(parts(ordered, Counter() if left_out is None else left_out)), table.height - answered.height


def parts(answered: pl.DataFrame, left_out: Counter[str]) -> Iterator[PoolRatings]:
    """Part answers; where a criterion has numbers, an answer in words only is not one of them."""
    for criterion in answered.partition_by("scheme", "criterion", maintain_order=True):
        numbers = criterion.drop_nulls("value")
        answers = numbers if numbers.height else criterion
        left_out[IN_WORDS] += criterion.height - answers.height
        for pool in answers.partition_by("pool", maintain_order=True):
            row = pool.row(0, named=True)
            yield PoolRatings(
                row["scheme"], row["criterion"], row["pool"], pool.select("item_id", "annotator", "value", "choice")
            )


def pool_of(by: PoolsBy) -> pl.Expr:
    """Say which pool an annotator belongs to."""
    if by == "region":
        return pl.col("annotator_region")
    if by == "in-region":
        inside = pl.when(pl.col("in_region")).then(pl.lit("in-region")).otherwise(pl.lit("out-of-region"))
        return pl.when(pl.col("in_region").is_null()).then(pl.lit(UNKNOWN)).otherwise(inside)
    flag = pl.col("flags").list.eval(pl.element().filter(pl.element().str.starts_with(RECRUITMENT))).list.first()
    return flag.str.strip_prefix(RECRUITMENT).fill_null(UNKNOWN)
