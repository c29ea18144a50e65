"""Numbers of the page, read from the scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

__all__ = ["Figure", "figure", "figure_in"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One score as it stands in the scores table, and the row it stands in."""

    value: float
    low: float | None
    high: float | None
    n: int
    row: int


def figure(rows: pl.DataFrame, **conditions: str | None) -> Figure | None:
    """Look up the score that meets all conditions; None where there is none or several."""
    for column, value in conditions.items():
        rows = rows.filter(pl.col(column).eq_missing(pl.lit(value, pl.String)))
    if rows.height != 1:
        return None
    return figure_in(rows.row(0, named=True))


def figure_in(row: Mapping[str, Any], *, suffix: str = "") -> Figure:
    """Read a score with its interval, its count and where it stands; a joined row has a second with a suffix."""
    value, low, high, count, place = (row[name + suffix] for name in ("value", "ci_low", "ci_high", "n", "row"))
    return Figure(value, low, high, count, place)
