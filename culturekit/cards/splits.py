"""Tables of a release as Parquet files by split, the layout that dataset hosts load without code."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from culturekit.storage.digests import digest
from culturekit.storage.tables import save_parquet

__all__ = ["DATA", "WHOLE", "write_splits"]

DATA = "data"
WHOLE = "full"
"""The split of a table that has only one."""

COLUMN = "concept"
NEVER_SPLIT = {"drops"}
ITEMS = {"artifact_id", "prompt_id", "name", "text"}
"""A table that is split has one of these: its rows are things, not sums."""

RESERVED = {"all", WHOLE}
MOST_SPLITS = 100


def write_splits(name: str, parquet: Path, folder: Path) -> list[Path]:
    """Write one table below `FOLDER/data/NAME`, a file for each concept where every row has one."""
    place = folder / DATA / name
    place.mkdir(parents=True)
    lazy = pl.scan_parquet(parquet, glob=False)
    written = []
    for split, concept in splits_of(name, lazy).items():
        rows = lazy if concept is None else lazy.filter(pl.col(COLUMN) == concept)
        written.append(place / f"{split}.parquet")
        save_parquet(rows.collect(), written[-1])
    return written


def splits_of(name: str, lazy: pl.LazyFrame) -> Mapping[str, str | None]:
    """Give the split names of a table and the concept that each one holds."""
    schema = lazy.collect_schema()
    if name in NEVER_SPLIT or schema.get(COLUMN) != pl.String() or not ITEMS & set(schema):
        return {WHOLE: None}
    concepts = lazy.select(pl.col(COLUMN).unique()).collect()[COLUMN].to_list()
    if not concepts or None in concepts or len(concepts) > MOST_SPLITS:
        return {WHOLE: None}
    return dict(named(sorted(concepts)))


def named(concepts: list[str]) -> Iterator[tuple[str, str]]:
    """Name a split after its concept, in letters that every host takes; a clash is told apart by a hash."""
    seen: set[str] = set()
    for concept in concepts:
        name = re.sub(r"[^a-z0-9]+", "_", concept.lower()).strip("_")
        if not name or name in seen or name in RESERVED or len(name) > 60:
            name = f"{name[:40]}_{digest(concept)[:8]}".strip("_")
        seen.add(name)
        yield name, concept
