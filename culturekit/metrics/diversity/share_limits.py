"""Wilson's limits for the shares of labels, when images come in batches."""

from typing import TYPE_CHECKING

from culturekit.defaults import CONFIDENCE
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS

if TYPE_CHECKING:
    import polars as pl

__all__ = ["share_limits"]


def share_limits(images: "pl.DataFrame", *, confidence: float = CONFIDENCE) -> "pl.DataFrame":
    """Say between which limits the share of each label lies.

    Images of a batch are made together and need not be independent, so it is batches that are taken as a sample: a
    share counts as that of as many independent images as would scatter as it does. With few batches there are no
    limits.

    Args:
        images: a row per image: its `batch` and its `label`, which may be null.
        confidence: how often such limits are to hold the true share.

    Returns:
        One row per label: `label`, `low`, `high`; both null where there are too few batches.
    """
    import polars as pl
    from scipy.special import stdtrit

    n, sizes = images.height, images.group_by("batch").len("size")
    batches = sizes.height
    counts = images.group_by("batch", "label").len("shown").join(sizes, on="batch")
    sums = counts.group_by("label").agg(
        pl.col("shown").sum(),
        squares=(pl.col("shown").cast(pl.Float64) ** 2).sum(),
        products=(pl.col("shown").cast(pl.Float64) * pl.col("size")).sum(),
    )
    if batches < FEWEST_PROMPTS:
        return sums.select("label", low=pl.lit(None, pl.Float64), high=pl.lit(None, pl.Float64))
    share = pl.col("shown") / n
    spread = pl.col("squares") - 2 * share * pl.col("products") + share**2 * float((sizes["size"] ** 2).sum())
    variance = batches / (batches - 1) * spread / n**2
    own = share * (1 - share)
    worth = pl.when((variance > 0) & (own > 0)).then(own / variance).otherwise(float(batches)).clip(upper_bound=n)
    t = float(stdtrit(batches - 1, (1 + confidence) / 2)) ** 2
    centre = (share + t / (2 * worth)) / (1 + t / worth)
    half = (t * (own / worth + t / (4 * worth**2))).sqrt() / (1 + t / worth)
    return sums.select("label", low=(centre - half).clip(lower_bound=0.0), high=(centre + half).clip(upper_bound=1.0))
