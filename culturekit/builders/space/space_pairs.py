"""Rows of two cultural spaces, each with its partner in the other."""

from dataclasses import dataclass
from typing import Self

import polars as pl

from culturekit.builders.folded_names import folded

__all__ = ["KEY", "PAIRED", "Pairs"]

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
    def of(cls, before: pl.DataFrame, after: pl.DataFrame) -> Self:
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
