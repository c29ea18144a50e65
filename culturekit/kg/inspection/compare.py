"""Comparing two graphs, or two extractions: items, statements, candidates, and what stands beside them.

Graphs are read in slices of item numbers, so that two whole dumps are compared in the memory of one slice.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from culturekit.core.errors import UsageError
from culturekit.core.schemas import CANDIDATES, DIFF
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Outcome, Work
from culturekit.kg.concepts import COUNTRY_PROPERTIES, EDGE_PROPERTIES
from culturekit.kg.store import GraphTables

DIFF_SCHEMA: Mapping[str, pl.DataType] = DIFF.schema


def empty_diff() -> pl.DataFrame:
    """Give a comparison that found nothing."""
    return pl.DataFrame(schema=dict(DIFF_SCHEMA))


def diff_totals(rows: pl.DataFrame) -> dict[str, int]:
    """Count the differences: `edge added` and so on, in alphabetical order."""
    counted = rows.group_by("part", "change").len().sort("part", "change")
    return {f"{part} {change}": count for part, change, count in counted.iter_rows()}


KEY = ("concept", "qid")
PARTS = {"label": "label", "country_qids": "country", "roots": "root", "hop": "hop", "path": "path"}
"""The part of the comparison that a column is; other columns are `field`."""

IN_ORDER = ("path",)
"""Lists that are compared as a whole; of the others, each element is a row."""

NUMBERS_PER_SLICE = 8_000_000
"""How many item numbers are compared at once: below a gigabyte for a dump of 100 million items."""

STATEMENT = ("number", "property", "value", "snak")
ROW = (*STATEMENT, "rank", "qualified", "ended")


def compare(a: Path, b: Path) -> pl.DataFrame:
    """List the differences from `a` to `b`: two graph folders, or two folders or files of candidates."""
    (kind_a, path_a), (kind_b, path_b) = kind_of(a), kind_of(b)
    if kind_a != kind_b:
        raise UsageError(
            "two things of different kinds cannot be compared", expected=kind_a, found=f"{kind_b} in {b}", where=str(a)
        )
    differences = diff_graphs if kind_a == "a graph" else diff_candidates
    return differences(path_a, path_b).sort(DIFF.key, nulls_last=False)


def write_comparison(work: Work, a: Path, b: Path) -> Outcome:
    """Write the differences as a stage; their totals are its counts."""
    rows = compare(a, b)
    write_table(work.out, DIFF, rows)
    return Outcome({"differences": rows.height, **diff_totals(rows)})


def kind_of(path: Path) -> tuple[str, Path]:
    """Say what a path holds, and name what to read."""
    if (path / "statements.parquet").is_file():
        return "a graph", path
    if path.is_file():
        return "candidates", path
    if (path / "candidates.parquet").is_file():
        return "candidates", path / "candidates.parquet"
    what = "a folder that is neither" if path.is_dir() else "nothing"
    raise UsageError("cannot be compared", where=str(path), expected="a graph store or candidates", found=what)


def diff_candidates(a: Path, b: Path) -> pl.DataFrame:
    """List the differences from candidates `a` to candidates `b`, two files."""
    before, after = read_table(a, CANDIDATES), read_table(b, CANDIDATES)
    added = after.join(before, on=KEY, how="anti").select(*KEY, after="label", change=pl.lit("added"))
    removed = before.join(after, on=KEY, how="anti").select(*KEY, before="label", change=pl.lit("removed"))
    parts = [empty_diff(), candidate_changes(added, "candidate", None), candidate_changes(removed, "candidate", None)]
    both = before.join(after, on=KEY, suffix=" after")
    for name, column in CANDIDATES.columns.items():
        if name in KEY:
            continue
        if isinstance(column.dtype, pl.List) and name not in IN_ORDER:
            parts += element_rows(both, name)
        else:
            parts.append(value_rows(both, name))
    return pl.concat(parts)


def value_rows(both: pl.DataFrame, name: str) -> pl.DataFrame:
    """Compare a column that is one value."""
    changed = both.filter(pl.col(name).ne_missing(pl.col(f"{name} after")))
    sides = [text_of(both, name).alias("before"), text_of(both, f"{name} after").alias("after")]
    return candidate_changes(changed.select(*KEY, *sides, change=pl.lit("changed")), PARTS.get(name, "field"), name)


def text_of(frame: pl.DataFrame, name: str) -> pl.Expr:
    """Write a value; a path as QIDs with spaces between."""
    column = pl.col(name)
    return column.list.join(" ") if isinstance(frame.schema[name], pl.List) else column.cast(pl.String)


def element_rows(both: pl.DataFrame, name: str) -> list[pl.DataFrame]:
    """Compare a column of several values: each that came or went."""
    changes = {"added": (f"{name} after", name), "removed": (name, f"{name} after")}
    return [
        candidate_changes(
            both.select(*KEY, value=pl.col(here).list.set_difference(pl.col(there)), change=pl.lit(change))
            .explode("value", empty_as_null=False)
            .unique(),
            PARTS.get(name, "field"),
            name,
        )
        for change, (here, there) in changes.items()
    ]


def candidate_changes(rows: pl.DataFrame, part: str, name: str | None) -> pl.DataFrame:
    """Give rows the columns of the table `diff`."""
    complete = rows.with_columns(part=pl.lit(part), property=pl.lit(name))
    return complete.select(
        (pl.col(column) if column in complete.columns else pl.lit(None)).cast(dtype).alias(column)
        for column, dtype in DIFF_SCHEMA.items()
    )


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
    yield graph_changes(b.join(a, on="number", how="anti"), "item", "added", after=pl.col("label"))
    yield graph_changes(a.join(b, on="number", how="anti"), "item", "removed", before=pl.col("label"))
    both = a.join(b, on="number", suffix="_after").filter(
        pl.col("label").ne_missing(pl.col("label_after"))
        | pl.col("label_language").ne_missing(pl.col("label_language_after"))
    )
    sides = {
        side: pl.format("{} ({})", f"label{suffix}", f"label_language{suffix}")
        for side, suffix in (("before", ""), ("after", "_after"))
    }
    yield graph_changes(both, "label", "changed", **sides)


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
    return graph_changes(
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


def graph_changes(rows: pl.DataFrame, part: pl.Expr | str, change: pl.Expr | str, **columns: pl.Expr) -> pl.DataFrame:
    """Give rows the columns of the table `diff`."""
    fixed = {
        "part": part if isinstance(part, pl.Expr) else pl.lit(part),
        "qid": pl.format("Q{}", "number"),
        "change": change if isinstance(change, pl.Expr) else pl.lit(change),
    }
    given = {**fixed, **columns}
    return rows.select(given.get(name, pl.lit(None)).cast(dtype).alias(name) for name, dtype in DIFF_SCHEMA.items())
