"""What changed between two extractions: candidates, their labels, countries, roots, hops, paths and the rest."""

from pathlib import Path

import polars as pl

from culturekit.kg.looking.diff_rows import DIFF_SCHEMA, empty_diff
from culturekit.records.schemas import CANDIDATES
from culturekit.storage.tables import read_table

__all__ = ["diff_candidates"]

KEY = ("concept", "qid")
PARTS = {"label": "label", "country_qids": "country", "roots": "root", "hop": "hop", "path": "path"}
"""The part of the comparison that a column is; other columns are `field`."""

IN_ORDER = ("path",)
"""Lists that are compared as a whole; of the others, each element is a row."""


def diff_candidates(a: Path, b: Path) -> pl.DataFrame:
    """List the differences from candidates `a` to candidates `b`, two files."""
    before, after = read_table(a, CANDIDATES), read_table(b, CANDIDATES)
    added = after.join(before, on=KEY, how="anti").select(*KEY, after="label", change=pl.lit("added"))
    removed = before.join(after, on=KEY, how="anti").select(*KEY, before="label", change=pl.lit("removed"))
    parts = [empty_diff(), shaped(added, "candidate", None), shaped(removed, "candidate", None)]
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
    return shaped(changed.select(*KEY, *sides, change=pl.lit("changed")), PARTS.get(name, "field"), name)


def text_of(frame: pl.DataFrame, name: str) -> pl.Expr:
    """Write a value; a path as QIDs with spaces between."""
    column = pl.col(name)
    return column.list.join(" ") if isinstance(frame.schema[name], pl.List) else column.cast(pl.String)


def element_rows(both: pl.DataFrame, name: str) -> list[pl.DataFrame]:
    """Compare a column of several values: each that came or went."""
    changes = {"added": (f"{name} after", name), "removed": (name, f"{name} after")}
    return [
        shaped(
            both.select(*KEY, value=pl.col(here).list.set_difference(pl.col(there)), change=pl.lit(change))
            .explode("value", empty_as_null=False)
            .unique(),
            PARTS.get(name, "field"),
            name,
        )
        for change, (here, there) in changes.items()
    ]


def shaped(rows: pl.DataFrame, part: str, name: str | None) -> pl.DataFrame:
    """Give rows the columns of the table `diff`."""
    complete = rows.with_columns(part=pl.lit(part), property=pl.lit(name))
    return complete.select(
        (pl.col(column) if column in complete.columns else pl.lit(None)).cast(dtype).alias(column)
        for column, dtype in DIFF_SCHEMA.items()
    )
