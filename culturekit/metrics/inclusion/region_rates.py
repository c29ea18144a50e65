"""How often people who live in a region, and people who do not, see that region in its images."""

from collections.abc import Sequence

import polars as pl

from culturekit.metrics.arguments import argument_error
from culturekit.metrics.inclusion.region_names import with_region_codes

__all__ = ["TARGETS", "check_columns", "consistency_and_representation", "in_region_rates", "representation_answers"]

TARGETS = {"object": "object_regions", "background": "background_regions"}
"""What an image's region can be read from, and the column with the regions that were ticked for it."""

SIDES = ("in", "out")


def in_region_rates(task2: pl.DataFrame, *, by: Sequence[str] = ("region",)) -> pl.DataFrame:
    """Give the share of all annotations that name the image's own region, by side of the annotator.

    The denominator is every annotation of that side: those that tick no region count, and so do those that do not see
    the object at all. Images whose prompt named no region have no own region and are left out.

    Args:
        task2: conforms to TASK2, as `read_task2` gives it.
        by: columns that part the annotations, such as `region`, `object` or `source`; may be none.

    Returns:
        The columns of `by`, then `side` (`in`: the annotator is in the image's region, or `out`), `target` (`object`
        or `background`), `rate` and `n`, the annotations; sorted by these. Cells without annotations have no row.

    Raises:
        UsageError: a column is missing, or a region is not one of the study's.
    """
    answers = representation_answers(task2, by=by)
    keys = [*by, "side", "target"]
    rates = answers.group_by(keys).agg(rate=pl.col("names").cast(pl.Float64).mean(), n=pl.len().cast(pl.UInt64))
    return rates.sort(keys).select(*keys, "rate", "n")


def representation_answers(task2: pl.DataFrame, *, by: Sequence[str]) -> pl.DataFrame:
    """Write two rows per annotation, for object and background: `side`, and whether it `names` the own region."""
    check_columns("task2", task2, (*by, "img_path", "region", "annotator_id", "annotator_loc", *TARGETS.values()))
    coded = with_region_codes(task2).filter(pl.col("own").is_not_null())
    side = pl.when(pl.col("own") == pl.col("home")).then(pl.lit(SIDES[0])).otherwise(pl.lit(SIDES[1]))
    return pl.concat(
        coded.with_columns(
            side=side,
            target=pl.lit(target),
            names=pl.col(column).list.contains(pl.col("own")),
        )
        for target, column in TARGETS.items()
    )


def consistency_and_representation(
    task2: pl.DataFrame, *, by: Sequence[str] = ("source", "annotator_loc")
) -> pl.DataFrame:
    """Give, side by side, how often the object is seen and how often the image's own region is.

    Returns:
        The columns of `by`, then `consistency` (the share of annotations that see the object), `object` and
        `background` (the shares that name the own region in each), and `n`; sorted. Images without an own region are
        left out of all three, so that the shares speak of the same images.

    Raises:
        UsageError: a column is missing, or a region is not one of the study's.
    """
    check_columns("task2", task2, (*by, "shown", "region", "annotator_loc", *TARGETS.values()))
    coded = with_region_codes(task2).filter(pl.col("own").is_not_null())
    shares = {
        "consistency": pl.col("shown"),
        **{target: pl.col(column).list.contains(pl.col("own")) for target, column in TARGETS.items()},
    }
    means = [named.cast(pl.Float64).mean().alias(name) for name, named in shares.items()]
    cells = coded.group_by(by).agg(*means, pl.len().cast(pl.UInt64).alias("n")) if by else coded.select(
        *means, pl.len().cast(pl.UInt64).alias("n")
    )  # fmt: skip
    return cells.sort(by) if by else cells


def check_columns(name: str, frame: pl.DataFrame, columns: Sequence[str]) -> None:
    """Refuse a frame that lacks a column, or in which the columns to part by are named twice."""
    missing = sorted(set(columns) - set(frame.columns))
    if missing:
        raise argument_error(name, f"a frame with the columns {', '.join(missing)}", ", ".join(frame.columns))
