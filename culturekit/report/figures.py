"""Numbers of the page, read from the scores, and how they are written in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

__all__ = [
    "ALIKE", "FEW", "Figure", "figure", "figure_in", "larger_first", "limits_of", "listed", "ordinal_span", "span",
    "text_of",
]  # fmt: skip

FEW = "too few batches"
"""What stands for a number that is none, and for limits that tell nothing."""

ALIKE = "all alike"
"""What stands for limits of no width: no batch, or no image, differed, which does not say that others would not."""

TELLS_NOTHING = 0.5
"""Limits of a share that are further apart tell nothing: they come of two batches or so."""


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


def larger_first(row: Mapping[str, Any]) -> tuple[str, str, Figure]:
    """Read how far two are apart, `a` less `b`: first the one that scores more, then the other."""
    found = figure_in(row)
    if not found.value < 0:
        return row["a"], row["b"], found
    low, high = (None if end is None else -end for end in (found.high, found.low))
    return row["b"], row["a"], Figure(-found.value, low, high, found.n, found.row)


def limits_of(found: Figure | None, *, between: str = ", ") -> str:
    """Write the limits of a score; words where they tell nothing, nothing where there are none."""
    if found is None or math.isnan(found.value) or found.low is None or found.high is None:
        return ""
    if found.high - found.low > TELLS_NOTHING:
        return FEW
    if found.high == found.low:
        return ALIKE
    return f"{found.low:.3f}{between}{found.high:.3f}"


def text_of(found: Figure | None) -> str:
    """Write a figure with its interval."""
    if found is None:
        return "not known"
    if math.isnan(found.value):
        return FEW
    limits = limits_of(found)
    if not limits:
        return f"{found.value:.3f}"
    return f"{found.value:.3f} {limits if limits in {ALIKE, FEW} else f'[{limits}]'}"


def span(found: Figure, *, percent: bool = False) -> str:
    """Write the limits of a share in words, such as 93 to 98 %."""
    if found.low is None or found.high is None:
        return f"{found.value:.0%}" if percent else f"{found.value:.3f}"
    if percent:
        return f"{found.low * 100:.0f} to {found.high * 100:.0f} %"
    return f"{found.low:.3f} to {found.high:.3f}"


def listed(names: Sequence[str]) -> str:
    """Write names one after the other, such as a, b and c."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def ordinal_span(place: Figure) -> str:
    """Write a rank with the ranks that it may have, such as 2nd to 3rd."""
    low = int(place.value if place.low is None else place.low)
    high = int(place.value if place.high is None else place.high)
    return ordinal(low) if low == high else f"{ordinal(low)} to {ordinal(high)}"


def ordinal(number: int) -> str:
    """Write an ordinal number."""
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
