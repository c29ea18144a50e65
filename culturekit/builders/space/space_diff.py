"""What became of each row of a cultural space: there, gone, another name, another place in it."""

import polars as pl

from culturekit.builders.country_names import folded
from culturekit.core.schemas import OF_A_MODEL
from culturekit.kg.inspection.graph_stats import text_of

KEY = ("concept", "country", "artifact_id")
PAIRED = {name: f"{name}_after" for name in KEY}

BY_NAME = ("concept", "country", "folded")
# By what rows find their partner, in turn.
WAYS = (KEY, ("artifact_id", "country"), ("artifact_id", "concept"), ("artifact_id",), BY_NAME)


COMPARED = ("name", "subconcept", "continent", "source", "path")


def _paired(before: pl.DataFrame, after: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Pair rows in each way where there is one on each side; give the pairs, what came, and what went."""
    removed, added = (_with_folded(side.select(*KEY, *COMPARED)) for side in (before, after))
    found = []
    for way in WAYS:
        a, b = (side.filter(pl.len().over(way) == 1) for side in (removed, added))
        b = b.rename(lambda name: f"{name}_after")
        pairs = a.join(b, left_on=way, right_on=[f"{name}_after" for name in way], coalesce=False)
        if way == BY_NAME:
            completed = pl.col("artifact_id", "artifact_id_after").str.starts_with(OF_A_MODEL)
            pairs = pairs.filter(pl.any_horizontal(completed))
        found.append(pairs)
        removed = removed.join(pairs, on=KEY, how="anti")
        added = added.join(pairs, left_on=KEY, right_on=list(PAIRED.values()), how="anti")
    return pl.concat(found), added, removed


def _with_folded(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the folded name, by which a completed artifact is known when it has an item."""
    known = {name: folded(name) for name in rows["name"].unique()}
    return rows.with_columns(folded=pl.col("name").replace_strict(known, return_dtype=pl.String))


RECLASSIFIED = ("artifact_id", "concept", "subconcept", "country", "continent", "source", "path")
# Columns that are counted and not told row by row: one new row can move the popularity of all others in its cell.
UNTOLD = ("qid", "country_name", "popularity", "popularity_source", "country_order", "aliases", "verdict")


CHANGES = ("added", "removed", "renamed", "reclassified")

CHANGE_SCHEMA = {name: pl.String() for name in (*KEY, *PAIRED.values(), "part", "change", "before", "after")}


def space_changes(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """List the changes from one space to another: the row's key on both sides, the part, and its two values.

    A row is known by artifact, concept and country. One that lost its partner finds it again where just one row of the
    same artifact came and just one went: in its country under another concept, in its concept under another country, or
    under another of both; and a completed artifact that has an item now, by its folded name. Where several came or
    went, nothing is paired by guess: they are added and removed.
    """
    both, added, removed = _paired(before, after)
    parts = {"name": "renamed"} | dict.fromkeys(RECLASSIFIED, "reclassified")
    lines = [_part_rows(both, name, change) for name, change in parts.items()]
    rows = pl.concat([_alone(added, "added"), _alone(removed, "removed"), *lines])
    return rows.sort(*KEY, *PAIRED.values(), "part", nulls_last=False)


def untold_changes(before: pl.DataFrame, after: pl.DataFrame) -> dict[str, int]:
    """Count the rows, there on both sides, that differ in a column which is not told row by row."""
    counts = {}
    for name in UNTOLD:
        if name in before.columns or name in after.columns:
            a, b = (
                side.select(*KEY, (pl.col(name) if name in side.columns else pl.lit(None)).alias(role))
                for role, side in (("a", before), ("b", after))
            )
            joined = a.join(b, on=KEY)
            counts[name] = joined.filter(text_of(joined, "a").ne_missing(text_of(joined, "b"))).height
    return {name: count for name, count in counts.items() if count}


def _part_rows(both: pl.DataFrame, name: str, change: str) -> pl.DataFrame:
    """List the pairs that differ in a column."""
    values = {"before": text_of(both, name), "after": text_of(both, f"{name}_after")}
    differs = both.with_columns(**values).filter(pl.col("before").ne_missing(pl.col("after")))
    return _shaped(differs, name, change)


def _alone(rows: pl.DataFrame, change: str) -> pl.DataFrame:
    """List rows that are on one side only; the name stands on that side."""
    here, there = ("after", "before") if change == "added" else ("before", "after")
    keys = {paired: pl.col(name) for name, paired in PAIRED.items()}
    one_side = {here: pl.col("name"), there: pl.lit(None, pl.String)}
    return _shaped(rows.with_columns(**one_side, **keys), "artifact", change)


def _shaped(rows: pl.DataFrame, part: str, change: str) -> pl.DataFrame:
    """Give rows the columns of a list of changes."""
    complete = rows.with_columns(part=pl.lit(part), change=pl.lit(change))
    return complete.select(pl.col(name).cast(dtype) for name, dtype in CHANGE_SCHEMA.items())
