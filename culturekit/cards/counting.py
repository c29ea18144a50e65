"""How many rows a table has per country, concept, hop and whatever else a reader asks for first."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import polars as pl

from culturekit.cards.card_tables import CardTable, scan

__all__ = ["NOTHING", "Counts", "agreement_in", "count_table"]

COUNTED = (
    "concept", "subconcept", "country", "continent", "source", "popularity_source", "kind", "benchmark", "language",
    "template_id", "group", "stage", "reason", "verdict",
)  # fmt: skip
"""Columns whose values are counted where a table has them."""

NOTHING = "(none)"
MOST_VALUES = 300
COEFFICIENTS = ("kappa", "alpha", "agreement", "icc", "correlation")


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Rows by the values of one column; by hop from a root; by country and concept together.

    `distinct` has how many values an identifying column has, and a counted one that has too many to list.
    """

    rows: int
    distinct: Mapping[str, int]
    values: Mapping[str, Mapping[str, int]]
    hops: Mapping[str, int]
    country_concept: Mapping[str, Mapping[str, int]]


def count_table(folder: Path, name: str) -> Counts:
    """Count one table."""
    lazy = scan(folder, name)
    schema = lazy.collect_schema()
    columns = [column for column in COUNTED if schema.get(column) == pl.String()]
    identities = [c for c in ("artifact_id", "qid", "name", "prompt_id", "text") if schema.get(c) == pl.String()]
    tallies = {column: tally(lazy.select(pl.col(column))) for column in columns}
    listed = {column: values for column, values in tallies.items() if len(values) <= MOST_VALUES}
    both = {"country", "concept"} <= set(columns) and "country" in listed and "concept" in listed
    return Counts(
        rows=int(lazy.select(pl.len()).collect().item()) if schema else 0,
        distinct={
            **{column: int(lazy.select(pl.col(column).n_unique()).collect().item()) for column in identities},
            **{column: len(values) for column, values in tallies.items() if column not in listed},
        },
        values=listed,
        hops=tally(hops(lazy)) if schema.get("path") == pl.List(pl.String()) else {},
        country_concept=crossed(lazy) if both else {},
    )


def hops(lazy: pl.LazyFrame) -> pl.LazyFrame:
    """Give each row's distance from its root: a path runs from the root to the artifact itself."""
    steps = pl.col("path").list.len()
    return lazy.select(pl.when(steps > 0).then((steps.cast(pl.Int64) - 1).cast(pl.String)).otherwise(None).alias("hop"))


def tally(column: pl.LazyFrame) -> dict[str, int]:
    """Count the values of the only column of a frame, in order of the values."""
    name = column.collect_schema().names()[0]
    rows = column.group_by(pl.col(name).fill_null(NOTHING)).len().collect().rows()
    return dict(sorted(rows, key=lambda row: (len(row[0]), row[0]) if row[0].isdigit() else (1_000, row[0])))


def crossed(lazy: pl.LazyFrame) -> dict[str, dict[str, int]]:
    """Count rows by country and concept."""
    pair = [pl.col("country").fill_null(NOTHING), pl.col("concept").fill_null(NOTHING)]
    counts: dict[str, dict[str, int]] = {}
    for country, concept, rows in sorted(lazy.group_by(pair).len().collect().rows()):
        counts.setdefault(country, {})[concept] = rows
    return counts


def agreement_in(folder: Path, tables: Sequence[CardTable]) -> Iterator[Mapping[str, object]]:
    """Take the coefficients of agreement that the release's own table of scores has."""
    for table in tables:
        if table.name not in {"scores", "agreement"} or not {"metric", "value"} <= {c.name for c in table.columns}:
            continue
        wanted = pl.any_horizontal(pl.col("metric").str.contains(word, literal=True) for word in COEFFICIENTS)
        kept = [
            c.name
            for c in table.columns
            if c.name in {"metric", "concept", "params", "value", "ci_low", "ci_high", "n"}
        ]
        yield from scan(folder, table.name).filter(wanted).select(kept).collect().to_dicts()
