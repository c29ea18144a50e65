"""How often each label occurs: the distribution that a Vendi score sums up."""

from typing import TYPE_CHECKING, Any

from culturekit.metrics.arguments import argument_error, check_choice
from culturekit.metrics.diversity.labels import LEVELS, Labels, columns_of, distinct, spell

if TYPE_CHECKING:
    import polars as pl

__all__ = ["distribution"]


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
