"""The manifold of real images, whether appealing images lie in it, and whether what appeals is what looks similar."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from culturekit.metrics.arguments import argument_error
from culturekit.metrics.inclusion.region_rates import check_columns
from culturekit.metrics.inclusion.triplet_distances import Features, feature_rows
from culturekit.metrics.realism.manifolds import in_manifold

__all__ = [
    "APPEAL_COMBO",
    "appeal_and_similarity",
    "appeal_in_manifold",
    "appealing_inside",
    "both_criteria",
]

APPEAL_COMBO = "A"
"""The triplets with a photograph as reference and two generated images of the same prompt."""

CELL = ("source", "region", "annotator_loc")


def appeal_in_manifold(
    task1: pl.DataFrame, real: ArrayLike, fake: Features, *, k: int, by: Sequence[str] = CELL
) -> pl.DataFrame:
    """Give the share of appealing generated images that lie in the manifold of real ones.

    Only triplets of combo A count of whose two generated images exactly one lies inside: among those a coin would
    put half of the appealing ones inside. The manifold is PRDC's: an image is inside where it is strictly closer to a
    real image than that one's k-th real neighbour.

    Args:
        task1: conforms to TASK1.
        real: float, (n_real, dim): the features of all real images, whatever their region.
        fake: image id -> float, (dim,): those of the generated images.
        k: of the neighbours; the manifold grows with it.
        by: columns that part the annotations; may be none.

    Returns:
        The columns of `by`, `share` and `n`, the annotations; sorted.

    Raises:
        UsageError: an argument breaks its rule, or an image has no features.
    """
    chosen = appealing_inside(task1, real, fake, k=k)
    check_columns("task1", chosen, by)
    return shares_by(chosen, "inside", by)


def appealing_inside(task1: pl.DataFrame, real: ArrayLike, fake: Features, *, k: int) -> pl.DataFrame:
    """Keep the annotations that count, with whether the appealing image lies `inside`."""
    check_columns("task1", task1, ("combo", "first_id", "second_id", "appealing_id"))
    manifold = np.asarray(real, dtype=np.float64)
    if manifold.ndim != 2 or not np.isfinite(manifold).all():
        raise argument_error("real", "finite vectors, (n_real, dim)", f"shape {manifold.shape}")
    if k != int(k) or not 1 <= k < len(manifold):
        raise argument_error("k", f"a whole number from 1 to {len(manifold) - 1}, one less than the real images", k)
    asked = task1.filter((pl.col("combo") == APPEAL_COMBO) & pl.col("appealing_id").is_not_null())
    images = sorted({*asked["first_id"], *asked["second_id"]})
    inside = pl.Series(dtype=pl.String)
    if images:
        rows = feature_rows("fake", fake, images)
        if rows.shape[1] != manifold.shape[1]:
            raise argument_error("fake", f"vectors of width {manifold.shape[1]}, like real's", f"width {rows.shape[1]}")
        inside = pl.Series(images).filter(pl.Series(in_manifold(manifold, rows, k=int(k))))
    first, second, chosen = (pl.col(name).is_in(inside.implode()) for name in ("first_id", "second_id", "appealing_id"))
    return asked.filter(first != second).with_columns(inside=chosen)


def appeal_and_similarity(task1: pl.DataFrame, *, by: Sequence[str] = CELL) -> pl.DataFrame:
    """Give how often the image chosen as more similar is also the more appealing one.

    Args:
        task1: conforms to TASK1.
        by: columns that part the annotations; may be none.

    Returns:
        The columns of `by`, `share` and `n`, the annotations that answer both; sorted.

    Raises:
        UsageError: a column is missing.
    """
    check_columns("task1", task1, by)
    return shares_by(both_criteria(task1), "same", by)


def both_criteria(task1: pl.DataFrame) -> pl.DataFrame:
    """Keep the annotations that answer both, with whether they chose the `same` image."""
    check_columns("task1", task1, ("similar_id", "appealing_id"))
    both = task1.filter(pl.col("similar_id").is_not_null() & pl.col("appealing_id").is_not_null())
    return both.with_columns(same=pl.col("similar_id") == pl.col("appealing_id"))


def shares_by(rows: pl.DataFrame, column: str, by: Sequence[str]) -> pl.DataFrame:
    """Give the share of rows that are true, by cell."""
    share, number = pl.col(column).cast(pl.Float64).mean().alias("share"), pl.len().cast(pl.UInt64).alias("n")
    if not by:
        return rows.select(share, number).filter(pl.col("n") > 0)
    return rows.group_by(by).agg(share, number).sort(by, nulls_last=True)
