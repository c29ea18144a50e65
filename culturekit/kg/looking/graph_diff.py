"""What changed between two graphs: items, labels, class edges, countries and other statements.

Both graphs are read in slices of item numbers, so that two whole dumps are compared in the memory of one slice.
"""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from culturekit.kg.graph_tables import GraphTables
from culturekit.kg.looking.diff_rows import DIFF_SCHEMA, empty_diff
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES, EDGE_PROPERTIES

__all__ = ["diff_graphs"]

NUMBERS_PER_SLICE = 8_000_000
"""How many item numbers are compared at once: below a gigabyte for a dump of 100 million items."""

STATEMENT = ("number", "property", "value", "snak")
ROW = (*STATEMENT, "rank", "qualified", "ended")


def diff_graphs(a: Path, b: Path, *, width: int = NUMBERS_PER_SLICE) -> pl.DataFrame:
    """List the differences from graph `a` to graph `b`."""
    before, after = GraphTables(a), GraphTables(b)
    largest = max(largest_number(before), largest_number(after))
    parts = [empty_diff()]
    for start in range(0, largest + 1, width):
        inside = pl.col("number").is_between(start, start + width - 1)
        parts += item_rows(before.items.filter(inside), after.items.filter(inside))
        parts.append(statement_rows(before.statements.filter(inside), after.statements.filter(inside)))
    return pl.concat(parts)


def largest_number(tables: GraphTables) -> int:
    """Give the largest item number."""
    return int(tables.items.select(pl.col("number").max().fill_null(0)).collect().item())


def item_rows(before: pl.LazyFrame, after: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Compare items and the labels of those in both."""
    a, b = (side.select("number", "label", "label_language").collect() for side in (before, after))
    yield shaped(b.join(a, on="number", how="anti"), "item", "added", after=pl.col("label"))
    yield shaped(a.join(b, on="number", how="anti"), "item", "removed", before=pl.col("label"))
    both = a.join(b, on="number", suffix="_after").filter(
        pl.col("label").ne_missing(pl.col("label_after"))
        | pl.col("label_language").ne_missing(pl.col("label_language_after"))
    )
    sides = {
        side: pl.format("{} ({})", f"label{suffix}", f"label_language{suffix}")
        for side, suffix in (("before", ""), ("after", "_after"))
    }
    yield shaped(both, "label", "changed", **sides)


def statement_rows(before: pl.LazyFrame, after: pl.LazyFrame) -> pl.DataFrame:
    """Compare statements by item, property and value; the manner of each is its rank, qualified, ended."""
    a, b = changed_rows(before.select(*ROW).collect(), after.select(*ROW).collect())
    a, b = manners(a), manners(b)
    joined = a.join(b, on=STATEMENT, how="full", coalesce=True, nulls_equal=True, suffix="_after").filter(
        pl.col("manner").ne_missing(pl.col("manner_after"))
    )
    part = (
        pl.when(pl.col("property").is_in(list(EDGE_PROPERTIES)))
        .then(pl.lit("edge"))
        .when(pl.col("property").is_in(list(COUNTRY_PROPERTIES)))
        .then(pl.lit("country"))
        .otherwise(pl.lit("statement"))
    )
    change = (
        pl.when(pl.col("manner").is_null())
        .then(pl.lit("added"))
        .when(pl.col("manner_after").is_null())
        .then(pl.lit("removed"))
        .otherwise(pl.lit("changed"))
    )
    value = pl.coalesce(pl.format("Q{}", "value"), "snak")
    return shaped(
        joined, part, change, property=pl.col("property"), value=value,
        before=pl.col("manner"), after=pl.col("manner_after"),
    )  # fmt: skip


def changed_rows(before: pl.DataFrame, after: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the rows of items that do not have exactly the same rows, in the same order, on both sides.

    Most items are the same in two dumps, and comparing them row by row takes less than half the time of grouping all.
    """
    a, b = (
        side.with_columns(place=pl.int_range(pl.len(), dtype=pl.UInt32).over("number"), size=pl.len().over("number"))
        for side in (before, after)
    )
    key = ["number", "place", "size"]
    pairs = a.join(b, on=key, how="full", coalesce=True, suffix="_after", nulls_equal=True)
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_after")) for name in ROW if name != "number")
    numbers = pairs.filter(differs).select("number").unique()
    return before.join(numbers, on="number", how="semi"), after.join(numbers, on="number", how="semi")


def manners(statements: pl.DataFrame) -> pl.DataFrame:
    """Give each item, property and value once, with the manner of all its statements in words."""
    marks = (pl.when(pl.col(name)).then(pl.lit(f", {name}")).otherwise(pl.lit("")) for name in ("qualified", "ended"))
    manner = pl.concat_str("rank", *marks)
    return (
        statements.select(*STATEMENT, manner=manner)
        .group_by(*STATEMENT)
        .agg(pl.col("manner").sort())
        .with_columns(pl.col("manner").list.join("; "))
    )


def shaped(rows: pl.DataFrame, part: pl.Expr | str, change: pl.Expr | str, **columns: pl.Expr) -> pl.DataFrame:
    """Give rows the columns of the table `diff`."""
    fixed = {
        "part": part if isinstance(part, pl.Expr) else pl.lit(part),
        "qid": pl.format("Q{}", "number"),
        "change": change if isinstance(change, pl.Expr) else pl.lit(change),
    }
    given = {**fixed, **columns}
    return rows.select(given.get(name, pl.lit(None)).cast(dtype).alias(name) for name, dtype in DIFF_SCHEMA.items())
