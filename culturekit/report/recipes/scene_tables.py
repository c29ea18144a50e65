"""Tables of the page about activities as data: cells, tables, sections, and scores looked up for them."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeAlias

import polars as pl

from culturekit.errors import IntegrityError
from culturekit.kg.countries import countries

__all__ = [
    "METRICS", "Cell", "Grid", "Section", "Sources", "Where", "explained", "grid", "looked_up", "name_of", "number",
    "row_of", "score_grid", "side_by_side", "with_params",
]  # fmt: skip

METRICS = {"align": "ALIGN", "hal": "HAL", "exag": "EXAG", "faith": "FAITH", "ddiv": "DDIV", "sdiv": "SDIV"}

DASH, NO_INTERVAL = "–", "no interval"

MOST_COLUMNS = 9
"""So many columns of scores fit beside the heads of rows."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what it says, what stands below in small, and its shade from 0 to 1."""

    text: str
    sub: str = ""
    shade: float | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """One table; the first cell of each row is its head. `parts` are captions over some columns each."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    parts: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A section: its anchor, heading and first sentence, its tables, and a picture where there is one."""

    anchor: str
    title: str
    lead: str
    grids: tuple[Grid, ...]
    picture: str = ""

    @property
    def tables(self) -> tuple[Grid, ...]:
        """The tables as they are shown."""
        return tuple(map(explained, side_by_side(self.grids)))


Where: TypeAlias = Mapping[str, str | None]
Sources: TypeAlias = list[tuple[str, Where, pl.DataFrame]]
"""Who says something, where that stands, and the scores."""


def with_params(scores: pl.DataFrame, *names: str, **places: str) -> pl.DataFrame:
    """Add what the parameters say of a score as columns, each by its name in them, or from its place."""
    said = {name: name for name in names} | places
    return scores.with_columns(
        pl.col("params").str.json_path_match(f"$.{place}").alias(name) for name, place in said.items()
    )


def name_of(code: str) -> str:
    """Name a country."""
    return countries()[code].name if code in countries() else code


def number(value: float | None, low: float | None = None, high: float | None = None, *, shaded: bool = False) -> Cell:
    """Write a score with its interval."""
    if value is None or math.isnan(value):
        return Cell(DASH, "" if value is None else "not defined")
    sub = "" if low is None or high is None or math.isnan(low) else f"{low:.2f} to {high:.2f}"
    return Cell(minus(f"{value:.3f}"), minus(sub), min(max(value, 0.0), 1.0) if shaded else None)


def minus(text: str) -> str:
    """Write minus signs as such."""
    return text.replace("-", "\N{MINUS SIGN}")


def looked_up(table: pl.DataFrame | None, *, shaded: bool = False, **where: str | None) -> Cell:
    """Look one score up; a dash where there is none. A value that has no interval says so."""
    row = row_of(table, **where)
    if row is None:
        return Cell(DASH)
    found = number(row["value"], row["ci_low"], row["ci_high"], shaded=shaded)
    return found if found.sub else replace(found, sub=NO_INTERVAL)


def row_of(table: pl.DataFrame | None, **where: str | None) -> dict[str, Any] | None:
    """Look up the one row that meets all conditions."""
    if table is None:
        return None
    for column, value in where.items():
        table = table.filter(pl.col(column).eq_missing(pl.lit(value, pl.String)))
    if table.height > 1:
        raise IntegrityError(
            f"{table.height} scores stand where the page shows one", where=str(where), expected="one of each kind",
            found="; ".join(table["params"].head(2)),
        )  # fmt: skip
    return table.row(0, named=True) if table.height else None


def grid(caption: str, heads: Iterable[str], rows: Iterable[tuple[str, Iterable[Cell]]]) -> Grid:
    """Make a table of rows with their heads."""
    return Grid(caption, tuple(heads), tuple((Cell(head), *cells) for head, cells in rows))


def score_grid(
    caption: str, first: str, columns: Iterable[tuple[str, Where]], rows: Sources, *, shaded: bool = False
) -> Grid:  # fmt: skip
    """Make a table of scores: each is looked up where its row and its column say."""
    places = list(columns)
    return grid(caption, (first, *(head for head, _ in places)), (
        (head, [looked_up(table, shaded=shaded, **own_place, **place) for _, place in places])
        for head, own_place, table in rows
    ))  # fmt: skip


def side_by_side(grids: Iterable[Grid]) -> Iterator[Grid]:
    """Put neighbours with the same columns and heads of rows into one table, evenly, as many as fit."""
    for (columns, _), group in groupby(grids, lambda each: (each.columns, [row[0] for row in each.rows])):
        alike, own = list(group), len(columns) - 1
        room = range(1, max(MOST_COLUMNS // max(own, 1), 1) + 1)
        size = max(number for number in room if len(alike) % number == 0)
        for start in range(0, len(alike), size):
            yield beside(alike[start : start + size])


def beside(alike: Sequence[Grid]) -> Grid:
    """Make one table of some; one stays as it is."""
    first, *others = alike
    if not others:
        return first
    parts = tuple((each.caption, len(first.columns) - 1) for each in alike)
    columns = (first.columns[0], *first.columns[1:] * len(alike))
    rows = zip(*(each.rows for each in alike), strict=True)
    return Grid("", columns, tuple((row[0][0], *(cell for part in row for cell in part[1:])) for row in rows), parts)


def explained(shown: Grid) -> Grid:
    """Say in the caption what a dash is, and where no value has an interval; where only some lack it, these say so."""
    cells = [cell for row in shown.rows for cell in row[1:]]
    scores = [cell for cell in cells if cell.text != DASH]
    if scores and all(cell.sub == NO_INTERVAL for cell in scores):
        rows = tuple((row[0], *(replace(cell, sub="") for cell in row[1:])) for row in shown.rows)
        shown = replace(shown, caption=f"{shown.caption}, without intervals".removeprefix(", "), rows=rows)
    if len(scores) == len(cells):
        return shown
    return replace(shown, caption=f"{shown.caption}; a dash: nothing to score".removeprefix("; "))
