"""The rows of a comparison, and their totals."""

from collections.abc import Mapping

import polars as pl

from culturekit.records.schemas import DIFF

__all__ = ["DIFF_SCHEMA", "diff_totals", "empty_diff"]

DIFF_SCHEMA: Mapping[str, pl.DataType] = DIFF.schema


def empty_diff() -> pl.DataFrame:
    """Give a comparison that found nothing."""
    return pl.DataFrame(schema=dict(DIFF_SCHEMA))


def diff_totals(rows: pl.DataFrame) -> dict[str, int]:
    """Count the differences: `edge added` and so on, in alphabetical order."""
    counted = rows.group_by("part", "change").len().sort("part", "change")
    return {f"{part} {change}": count for part, change, count in counted.iter_rows()}
