"""Rows of a CSpace to choose from, weighted by popularity."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError

__all__ = ["Pool", "Row", "rows_of"]


class Row(NamedTuple):
    """A row of the CSpace, as far as a choice needs it; `place` counts the rows of its concept."""

    artifact_id: str
    concept: str
    country: str
    popularity: float | None
    place: int


class Pool:
    """Rows of which one is drawn, the popular ones more often."""

    def __init__(self, rows: Sequence[Row], temperature: float) -> None:
        """Weigh the rows once; there is at least one."""
        self.rows = rows
        self.cumulative = np.cumsum(weights(rows, temperature))

    def draw(self, number: float) -> Row:
        """Draw a row by a number in [0, 1)."""
        return self.rows[int(self.cumulative.searchsorted(number * self.cumulative[-1], side="right"))]


def weights(rows: Sequence[Row], temperature: float) -> NDArray[np.float64]:
    """Weigh rows by popularity ** temperature; what has no popularity counts as the least popular."""
    least = min((row.popularity for row in rows if row.popularity is not None), default=1.0)
    popularity = np.array([least if row.popularity is None else row.popularity for row in rows])
    most = popularity.max()
    return np.asarray((popularity / most) ** temperature) if most > 0 else np.ones(len(rows))


def rows_of(cspace: pl.DataFrame) -> Iterator[Row]:
    """Read the rows of a CSpace, in its order."""
    wrong = cspace.filter(~(pl.col("popularity").is_finite() & (pl.col("popularity") >= 0)))
    if not wrong.is_empty():
        artifact_id, popularity = wrong.select("artifact_id", "popularity").row(0)
        raise UsageError(
            f"the popularity of {artifact_id} cannot weigh it", expected="a number of 0 or more", found=str(popularity)
        )
    place = pl.int_range(pl.len()).over("concept").alias("place")
    yield from map(Row._make, cspace.select("artifact_id", "concept", "country", "popularity", place).iter_rows())
