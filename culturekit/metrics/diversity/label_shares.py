"""How often each label occurs: the distribution that a Vendi score sums up, and limits for its shares."""

from typing import TYPE_CHECKING, Any

from culturekit.defaults import CONFIDENCE
from culturekit.metrics.arguments import argument_error, check_choice
from culturekit.metrics.diversity.labels import LEVELS, Labels, columns_of, distinct, spell
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS

if TYPE_CHECKING:
    import polars as pl

__all__ = ["distribution", "share_limits"]


def distribution(labels: Labels, *, level: str, normalize_labels: bool = True) -> "pl.DataFrame":
    """Count the labels of one level.

    Args:
        labels: N triples (continent, country, artifact), or a polars frame with those columns.
        level: `continent`, `country` or `artifact`.
        normalize_labels: whether spelling differences of labels are ignored; of several spellings the first in
            alphabetical order is shown.

    Returns:
        One row per label, the most frequent first: `label` (null for the missing ones), `n`, and the share `p`; the
        shares sum to 1.

    Raises:
        UsageError: an argument breaks its rule.
    """
    import polars as pl

    check_choice("level", level, LEVELS)
    column = columns_of(labels)[LEVELS.index(level)]
    if len(column) == 0:
        raise argument_error("labels", "at least one (continent, country, artifact)", labels)
    if not isinstance(column, pl.Series):
        column = series_of(list(column), level)
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    counts = column.alias("label").value_counts(name="n")
    if normalize_labels and counts["label"].dtype == pl.String:
        spelled = [None if label is None else str(spell(label)) for label in counts["label"]]
        merged = counts.with_columns(spelled=pl.Series(spelled, dtype=pl.String)).group_by("spelled")
        counts = merged.agg(pl.col("label").min(), pl.col("n").sum()).drop("spelled")
    shares = counts.with_columns(pl.col("n").cast(pl.Int64), p=pl.col("n") / len(column))
    return shares.sort(["n", "label"], descending=[True, False], nulls_last=True)


def series_of(labels: list[Any], level: str) -> "pl.Series":
    """Make a column of whole numbers where all labels are, and else one of texts."""
    import polars as pl

    if any(isinstance(label, str) for label in distinct(labels, name=level)):
        return pl.Series([None if label is None else str(label) for label in labels], dtype=pl.String)
    return pl.Series([None if label is None else int(label) for label in labels], dtype=pl.Int64)


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
