"""The order of an index's rows, and the slices that follow from it."""

import polars as pl

from culturekit.records.schemas import SLICES

__all__ = ["ROW_ORDER", "in_index_order", "slices_of"]

ROW_ORDER = ("channel", "concept", "country", "artifact_id", "source")
"""What rows stand by; concept and country are the artifact's first."""


def in_index_order(rows: pl.DataFrame, artifacts: pl.DataFrame) -> pl.DataFrame:
    """Sort rows as an index keeps them.

    Args:
        rows: with channel, artifact_id and source; other columns are kept.
        artifacts: ARTIFACTS with every artifact of the rows.

    Returns:
        The rows in order, with the concept and country they stand under and `owner`, the artifact's row.
    """
    under = artifacts.select(
        "artifact_id", concept=pl.col("concepts").list.first(), country=pl.col("countries").list.first()
    ).with_row_index("owner")
    return rows.join(under, on="artifact_id", how="left", maintain_order="left").sort(ROW_ORDER, maintain_order=True)


def slices_of(ordered: pl.DataFrame) -> pl.DataFrame:
    """Give SLICES of rows that stand in order."""
    numbered = ordered.with_row_index("place")
    runs = numbered.group_by("channel", "concept", "country", maintain_order=True).agg(
        start=pl.col("place").min(), stop=pl.col("place").max() + 1
    )
    return runs.select([pl.col(name).cast(dtype) for name, dtype in SLICES.schema.items()])
