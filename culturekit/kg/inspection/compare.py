"""Compare two graphs, or two extractions: items, statements, candidates, and what stands beside them.

Graphs are read in slices of item numbers, so that two whole dumps are compared in the memory of one slice.
"""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from culturekit.core.errors import UsageError
from culturekit.core.schemas import CANDIDATES, DIFF
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Outcome, Work
from culturekit.kg.concepts import COUNTRY_PROPERTIES, EDGE_PROPERTIES
from culturekit.kg.store import GraphTables, qid_of

_KEY = ("concept", "qid")
# The part of the comparison that a column is; other columns are `field`.
_PARTS = {"label": "label", "country_qids": "country", "roots": "root", "hop": "hop", "path": "path"}
# How many item numbers are compared at once: below a gigabyte for a dump of 100 million items.
_NUMBERS_PER_SLICE = 8_000_000
_STATEMENT = ("number", "property", "value", "snak")
_ROW = (*_STATEMENT, "rank", "qualified", "ended")


def compare(a: Path, b: Path) -> pl.DataFrame:
    """List the differences from `a` to `b`: two graph folders, or two folders or files of candidates."""
    (kind_a, path_a), (kind_b, path_b) = _kind_of(a), _kind_of(b)
    if kind_a != kind_b:
        raise UsageError(
            "two things of different kinds cannot be compared", expected=kind_a, found=f"{kind_b} in {b}", where=str(a)
        )
    differences = diff_graphs if kind_a == "a graph" else _diff_candidates
    return differences(path_a, path_b).sort(DIFF.key, nulls_last=False)


def diff_totals(rows: pl.DataFrame) -> dict[str, int]:
    """Count the differences: `edge added` and so on, in alphabetical order."""
    counted = rows.group_by("part", "change").len().sort("part", "change")
    return {f"{part} {change}": count for part, change, count in counted.iter_rows()}


def write_comparison(work: Work, a: Path, b: Path) -> Outcome:
    """Write the differences as a stage; their totals are its counts."""
    rows = compare(a, b)
    write_table(work.out, DIFF, rows)
    return Outcome({"differences": rows.height, **diff_totals(rows)})


def _kind_of(path: Path) -> tuple[str, Path]:
    """Say what a path holds, and name what to read."""
    if (path / "statements.parquet").is_file():
        return "a graph", path
    if path.is_file():
        return "candidates", path
    if (path / "candidates.parquet").is_file():
        return "candidates", path / "candidates.parquet"
    what = "a folder that is neither" if path.is_dir() else "nothing"
    raise UsageError("cannot be compared", where=str(path), expected="a graph store or candidates", found=what)


def _diff_rows(rows: pl.DataFrame, part: pl.Expr | str, change: pl.Expr | str, **columns: pl.Expr) -> pl.DataFrame:
    """Give rows the columns of the table `diff`; those that are not given, and not there, are null."""
    fixed = {
        name: pl.lit(word) if isinstance(word, str) else word for name, word in (("part", part), ("change", change))
    }
    known = {**{name: pl.col(name) for name in rows.columns}, **fixed, **columns}
    return rows.select(known.get(name, pl.lit(None)).cast(dtype).alias(name) for name, dtype in DIFF.schema.items())


def _diff_candidates(a: Path, b: Path) -> pl.DataFrame:
    """List the differences from candidates `a` to candidates `b`, two files."""
    before, after = read_table(a, CANDIDATES), read_table(b, CANDIDATES)
    added, removed = after.join(before, on=_KEY, how="anti"), before.join(after, on=_KEY, how="anti")
    parts = [
        _diff_rows(added.select(*_KEY, after="label"), "candidate", "added"),
        _diff_rows(removed.select(*_KEY, before="label"), "candidate", "removed"),
    ]
    both = before.join(after, on=_KEY, suffix=" after")
    for name, column in CANDIDATES.columns.items():
        if name in _KEY:
            continue
        part, there = _PARTS.get(name, "field"), f"{name} after"
        if not isinstance(column.dtype, pl.List) or name == "path":  # paths are compared as a whole
            changed = both.filter(pl.col(name).ne_missing(pl.col(there)))
            sides = {"before": text_of(both, name), "after": text_of(both, there)}
            parts.append(_diff_rows(changed.select(*_KEY, **sides), part, "changed", property=pl.lit(name)))
            continue
        for change, one, other in (("added", there, name), ("removed", name, there)):
            values = both.select(*_KEY, value=pl.col(one).list.set_difference(pl.col(other)))
            elements = values.explode("value", empty_as_null=False).unique()
            parts.append(_diff_rows(elements, part, change, property=pl.lit(name)))
    return pl.concat(parts)


def text_of(frame: pl.DataFrame, name: str) -> pl.Expr:
    """Write a value; a path as QIDs with spaces between."""
    column = pl.col(name)
    return column.list.join(" ") if isinstance(frame.schema[name], pl.List) else column.cast(pl.String)


def diff_graphs(a: Path, b: Path, *, width: int = _NUMBERS_PER_SLICE) -> pl.DataFrame:
    """List the differences from graph `a` to graph `b`."""
    before, after = GraphTables(a), GraphTables(b)
    largest = max(
        int(side.items.select(pl.col("number").max().fill_null(0)).collect().item()) for side in (before, after)
    )
    parts: list[pl.DataFrame] = []
    for start in range(0, largest + 1, width):
        inside = pl.col("number").is_between(start, start + width - 1)
        parts += _item_rows(before.items.filter(inside), after.items.filter(inside))
        parts.append(_statement_rows(before.statements.filter(inside), after.statements.filter(inside)))
    return pl.concat(parts)


def _item_rows(before: pl.LazyFrame, after: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Compare items and the labels of those in both."""
    a, b = (side.select("number", "label", "label_language").collect() for side in (before, after))
    qid, label = qid_of("number"), pl.col("label")
    yield _diff_rows(b.join(a, on="number", how="anti"), "item", "added", qid=qid, after=label)
    yield _diff_rows(a.join(b, on="number", how="anti"), "item", "removed", qid=qid, before=label)
    both = a.join(b, on="number", suffix="_after").filter(
        pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_after")) for name in ("label", "label_language"))
    )
    old, new = (pl.format("{} ({})", f"label{side}", f"label_language{side}") for side in ("", "_after"))
    yield _diff_rows(both, "label", "changed", qid=qid, before=old, after=new)


def _statement_rows(before: pl.LazyFrame, after: pl.LazyFrame) -> pl.DataFrame:
    """Compare statements by item, property and value; the manner of each is its rank, qualified, ended."""
    a, b = map(_manners, _changed_rows(before.select(*_ROW).collect(), after.select(*_ROW).collect()))
    joined = a.join(b, on=_STATEMENT, how="full", coalesce=True, nulls_equal=True, suffix="_after").filter(
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
    return _diff_rows(
        joined, part, change, qid=qid_of("number"), value=pl.coalesce(qid_of("value"), "snak"),
        before=pl.col("manner"), after=pl.col("manner_after"),
    )  # fmt: skip


def _changed_rows(before: pl.DataFrame, after: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the rows of items that do not have exactly the same rows, in the same order, on both sides.

    Most items are the same in two dumps, and comparing them row by row takes less than half the time of grouping all.
    """
    a, b = (
        side.with_columns(place=pl.int_range(pl.len(), dtype=pl.UInt32).over("number"), size=pl.len().over("number"))
        for side in (before, after)
    )
    key = ["number", "place", "size"]
    pairs = a.join(b, on=key, how="full", coalesce=True, suffix="_after", nulls_equal=True)
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_after")) for name in _ROW if name != "number")
    numbers = pairs.filter(differs).select("number").unique()
    return before.join(numbers, on="number", how="semi"), after.join(numbers, on="number", how="semi")


def _manners(statements: pl.DataFrame) -> pl.DataFrame:
    """Give each item, property and value once, with the manner of all its statements in words."""
    marks = (pl.when(pl.col(name)).then(pl.lit(f", {name}")).otherwise(pl.lit("")) for name in ("qualified", "ended"))
    manners = statements.select(*_STATEMENT, manner=pl.concat_str("rank", *marks)).group_by(*_STATEMENT)
    return manners.agg(pl.col("manner").sort().str.join("; "))
