"""Mean ratings as a page to look at: models by concept down, countries across, low cells shaded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup

from culturekit.annotate.form import template, template_text
from culturekit.storage.digests import source_hash

__all__ = ["Cell", "Grid", "grids", "rating_page"]

ALL = "all concepts"


@dataclass(frozen=True, slots=True)
class Cell:
    """What one cell says: its text, its mark, and how much stands behind it."""

    text: str
    mark: str
    behind: str


@dataclass(frozen=True, slots=True)
class Grid:
    """One table of the page.

    Attributes:
        title: what is rated, and by whom.
        countries: the columns.
        rows: concept, model and a cell per column; None where nobody rated.
    """

    title: str
    countries: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[Cell | None, ...]], ...]


def rating_page(ratings: pl.DataFrame, choices: pl.DataFrame, *, scheme: str, notes: Sequence[str]) -> str:
    """Write the page; it runs nothing and loads nothing."""
    style = template_text("ratings.css")
    policy = f"default-src 'none'; style-src '{source_hash(style)}'; base-uri 'none'; form-action 'none'"
    page = template("ratings.html").render(
        scheme=scheme, grids=grids(ratings, choices), notes=notes, policy=policy, style=Markup(style)
    )
    return page + "\n"


def grids(ratings: pl.DataFrame, choices: pl.DataFrame) -> list[Grid]:
    """Lay out every criterion; where each country has its own people, all countries share one table."""
    found = []
    for part in ratings.partition_by("scheme", "criterion", maintain_order=True):
        found += [grid(one, f"{part['criterion'][0]}{who}", mean_cell) for one, who in by_people(part)]
    for part in choices.partition_by("scheme", "criterion", "choice", maintain_order=True):
        name = f"{part['criterion'][0]}: share of {part['choice'][0]}"
        found += [grid(one, f"{name}{who}", share_cell) for one, who in by_people(part)]
    return found


def by_people(part: pl.DataFrame) -> list[tuple[pl.DataFrame, str]]:
    """Part a table so that each of its cells is of one pool: people at home, and then each pool apart."""
    home = pl.col("country").eq_missing(pl.col("pool"))
    own, others = part.filter(home), part.filter(~home)
    pools = others.sort("pool").partition_by("pool", maintain_order=True)
    return [
        *([(own, ", by people of each country")] if own.height else []),
        *((one, f", by people of the pool {one['pool'][0]}") for one in pools),
    ]


def grid(part: pl.DataFrame, title: str, cell: Callable[[dict[str, Any]], Cell]) -> Grid:
    """Lay out one table."""
    countries = sorted({text or "–" for text in part["country"]})
    cells = {(row["concept"], row["model"], row["country"] or "–"): cell(row) for row in part.iter_rows(named=True)}
    heads = sorted(
        {(concept, model) for concept, model, _ in cells}, key=lambda head: (head[0] is None, head[0], head[1])
    )
    rows = tuple(
        (concept or ALL, model, tuple(cells.get((concept, model, country)) for country in countries))
        for concept, model in heads
    )
    return Grid(title, tuple(countries), rows)


def mean_cell(row: dict[str, Any]) -> Cell:
    """Write a mean and its deviation."""
    spread = "" if row["sd"] is None else f" ± {row['sd']:.1f}"
    return Cell(f"{row['mean']:.1f}{spread}", str(row["mark"] or "").replace(" ", "-"), behind(row))


def share_cell(row: dict[str, Any]) -> Cell:
    """Write a share."""
    return Cell(f"{row['rate']:.0%}".replace("%", "\N{NO-BREAK SPACE}%"), "", behind(row))


def behind(row: dict[str, Any]) -> str:
    """Say how much stands behind a cell."""
    return f"{row['items']} items, {row['answers']} answers"
