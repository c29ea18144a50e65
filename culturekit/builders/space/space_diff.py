"""What became of each row of a cultural space: there, gone, another name, another place in it."""

from dataclasses import dataclass
from typing import Self

import polars as pl

from culturekit.builders.country_names import folded
from culturekit.kg.inspection.graph_stats import text_of

KEY = ("concept", "country", "artifact_id")
PAIRED = {name: f"{name}_after" for name in KEY}
COMPLETED = "LLM:"

BY_NAME = ("concept", "country", "folded")
WAYS = (("artifact_id", "country"), ("artifact_id", "concept"), ("artifact_id",), BY_NAME)
"""By what rows without a partner of the same key find one, in turn."""

COMPARED = ("name", "subconcept", "continent", "source", "path")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows on both sides, their columns after with `_after`, and those on one side only."""

    both: pl.DataFrame
    added: pl.DataFrame
    removed: pl.DataFrame

    @classmethod
    def pair_rows(cls, before: pl.DataFrame, after: pl.DataFrame) -> Self:
        """Pair rows by key, then by what is left of it."""
        a, b = before.select(*KEY, *COMPARED), after.select(*KEY, *COMPARED)
        found = [a.join(with_names(b), left_on=KEY, right_on=list(PAIRED.values()), coalesce=False)]
        removed, added = a.join(b, on=KEY, how="anti"), b.join(a, on=KEY, how="anti")
        for way in WAYS:
            if way == BY_NAME:
                removed, added = with_folded(removed), with_folded(added)
            pairs = only_pairs(removed, added, way)
            found.append(pairs)
            removed = removed.join(pairs, on=KEY, how="anti")
            added = added.join(pairs, left_on=KEY, right_on=list(PAIRED.values()), how="anti")
        return cls(pl.concat([frame.select(found[0].columns) for frame in found]), added, removed)


def only_pairs(removed: pl.DataFrame, added: pl.DataFrame, way: tuple[str, ...]) -> pl.DataFrame:
    """Pair what went and what came where there is one of each."""
    a, b = (side.filter(pl.len().over(way) == 1) for side in (removed, added))
    pairs = a.join(with_names(b), left_on=way, right_on=[f"{name}_after" for name in way], coalesce=False)
    if way == BY_NAME:
        ids = [pl.col(name).str.starts_with(COMPLETED) for name in ("artifact_id", "artifact_id_after")]
        pairs = pairs.filter(ids[0] | ids[1])
    return pairs


def with_folded(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the folded name, by which a completed artifact is known when it has an item."""
    names = rows["name"].unique()
    known = dict(zip(names, map(folded, names), strict=True))
    return rows.with_columns(folded=pl.col("name").replace_strict(known, return_dtype=pl.String))


def with_names(rows: pl.DataFrame) -> pl.DataFrame:
    """Name columns as those of the other side."""
    return rows.rename({name: f"{name}_after" for name in rows.columns})


RENAMED = ("name",)
RECLASSIFIED = ("artifact_id", "concept", "subconcept", "country", "continent", "source", "path")
UNTOLD = ("qid", "country_name", "popularity", "popularity_source", "country_order", "aliases", "verdict")
"""Columns that are counted and not told row by row: one new row can move the popularity of all others in its cell."""

CHANGES = ("added", "removed", "renamed", "reclassified")

CHANGE_SCHEMA = {name: pl.String() for name in (*KEY, *PAIRED.values(), "part", "change", "before", "after")}


def space_changes(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """List the changes from one space to another: the row's key on both sides, the part, and its two values.

    A row is known by artifact, concept and country. One that lost its partner finds it again where just one row of the
    same artifact came and just one went: in its country under another concept, in its concept under another country, or
    under another of both; and a completed artifact that has an item now, by its folded name. Where several came or
    went, nothing is paired by guess: they are added and removed.
    """
    pairs = Pairs.pair_rows(before, after)
    lines = [
        part_rows(pairs.both, name, change)
        for change, names in (("renamed", RENAMED), ("reclassified", RECLASSIFIED))
        for name in names
    ]
    rows = pl.concat([alone(pairs.added, "added"), alone(pairs.removed, "removed"), *lines])
    return rows.sort(*KEY, *PAIRED.values(), "part", nulls_last=False)


def untold_changes(before: pl.DataFrame, after: pl.DataFrame) -> dict[str, int]:
    """Count the rows, there on both sides, that differ in a column which is not told row by row."""
    counts = {}
    for name in UNTOLD:
        if name not in before.columns and name not in after.columns:
            continue
        sides = [
            side if name in side.columns else side.with_columns(pl.lit(None).alias(name)) for side in (before, after)
        ]
        joined = sides[0].select(*KEY, a=name).join(sides[1].select(*KEY, b=name), on=KEY)
        differs = joined.filter(text_of(joined, "a").ne_missing(text_of(joined, "b"))).height
        if differs:
            counts[name] = differs
    return counts


def part_rows(both: pl.DataFrame, name: str, change: str) -> pl.DataFrame:
    """List the pairs that differ in a column."""
    values = {"before": text_of(both, name), "after": text_of(both, f"{name}_after")}
    differs = both.with_columns(**values).filter(pl.col("before").ne_missing(pl.col("after")))
    return shaped(differs, name, change)


def alone(rows: pl.DataFrame, change: str) -> pl.DataFrame:
    """List rows that are on one side only; the name stands on that side."""
    here, there = ("after", "before") if change == "added" else ("before", "after")
    keys = {paired: pl.col(name) for name, paired in PAIRED.items()}
    return shaped(
        rows.with_columns(pl.col("name").alias(here), pl.lit(None, pl.String).alias(there), **keys), "artifact", change
    )


def shaped(rows: pl.DataFrame, part: str, change: str) -> pl.DataFrame:
    """Give rows the columns of a list of changes."""
    complete = rows.with_columns(part=pl.lit(part), change=pl.lit(change))
    return complete.select(pl.col(name).cast(dtype) for name, dtype in CHANGE_SCHEMA.items())
