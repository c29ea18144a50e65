"""What nobody could tell: the answers as they would be if all such images were like most, or all different."""

from typing import Literal, TypeAlias

import polars as pl

from culturekit.metrics.corrected.audit_gates import closest_level, told_apart
from culturekit.metrics.corrected.audited_places import lone_continent
from culturekit.metrics.diversity.kernels import Weights

__all__ = ["SUPPOSED", "Supposed", "answers_if"]

Supposed: TypeAlias = Literal["if_alike", "if_different"]
SUPPOSED: tuple[Supposed, ...] = ("if_alike", "if_different")
"""The two ends between which the images lie that nobody could tell."""

MOST_LABELS = 20
"""With so many labels of their own images are different enough: two of them hardly ever meet in a batch."""

LABELS = ("artifact_id", "country", "continent")
"""What somebody named of such an image stays."""


def answers_if(supposed: Supposed, answers: pl.DataFrame, weights: Weights) -> pl.DataFrame | None:
    """Let images of which no answer names the level that a kernel looks at show what most show, or each a thing apart.

    None where all images are placed.
    """
    column = closest_level(weights)[1]
    told = told_apart(answers).with_columns(placed=pl.col("none_of_these") | pl.col(column).is_not_null())
    untold, placed = told.filter(~pl.col("placed").any().over("image_id")), told.filter("placed")
    if untold.is_empty() or placed.is_empty():
        return None
    if supposed == "if_alike":
        levels = ("none_of_these", *LABELS[LABELS.index(column) :])
        most = placed.group_by(levels).len().sort("len", *levels, descending=[True] + [False] * len(levels)).row(0)
        labels = dict.fromkeys(LABELS) | dict(zip(levels, most, strict=False))
        named = untold.with_columns(pl.lit(said, told.schema[level]).alias(level) for level, said in labels.items())
    else:
        known = {level: pl.col(level).max().over("image_id") for level in LABELS}
        known["continent"] = pl.coalesce(known["continent"], lone_continent(known["country"]))
        number = pl.col("image_id").rank("dense") % MOST_LABELS
        own = pl.format("(cannot tell {}) {}", number, known["continent"].fill_null(""))
        apart = (known[level].fill_null(own).alias(level) for level in LABELS)
        named = untold.with_columns(*apart, none_of_these=pl.lit(value=False))
    return pl.concat([placed, named]).with_columns(none_means=pl.lit(None, pl.String)).drop("placed")
