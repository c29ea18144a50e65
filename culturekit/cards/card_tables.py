"""The tables of a card folder as they are: files, hashes, rows, columns, types, and the concepts they are split by."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import msgspec
import polars as pl

from culturekit.storage.digests import digest, digest_file
from culturekit.storage.tables import save_parquet

__all__ = [
    "DATA",
    "FILES",
    "CardTable",
    "ColumnFacts",
    "FileFacts",
    "described_files",
    "other_files",
    "scan",
    "scan_texts",
    "tables_in",
    "write_splits",
]

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


FILES = "files"

Hashes: TypeAlias = Mapping[str, str]
NOT_KNOWN: Hashes = MappingProxyType({})
"""Hashes of files by path, where they were taken already."""


class ColumnFacts(msgspec.Struct, frozen=True):
    """A column: its name, its type as polars writes it, and how many cells are null."""

    name: str
    type: str
    nulls: int


class FileFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file: where it lies in the folder, its content by hash, and its rows where it is a table."""

    path: str
    sha256: str
    bytes: int
    rows: int | None = None
    split: str = ""


class CardTable(msgspec.Struct, frozen=True):
    """A table, in one file per split."""

    name: str
    rows: int
    columns: tuple[ColumnFacts, ...]
    files: tuple[FileFacts, ...]


def tables_in(folder: Path, hashes: Hashes = NOT_KNOWN) -> tuple[CardTable, ...]:
    """Describe the tables below `data/`.

    Raises:
        pl.exceptions.PolarsError: a file is no readable table.
    """
    place = folder / DATA
    names = sorted(path.name for path in place.iterdir() if path.is_dir()) if place.is_dir() else []
    return tuple(table_in(folder, name, hashes) for name in names)


def table_in(folder: Path, name: str, hashes: Hashes) -> CardTable:
    """Describe one table; the files of it have the same columns."""
    paths = sorted((folder / DATA / name).glob("*.parquet"))
    files = tuple(file_facts(folder, path, hashes, split=path.stem) for path in paths)
    lazy = scan(folder, name)
    schema = lazy.collect_schema()
    nulls = lazy.select(pl.all().null_count()).collect().row(0) if schema else ()
    columns = tuple(
        ColumnFacts(column, str(dtype), count) for (column, dtype), count in zip(schema.items(), nulls, strict=True)
    )
    return CardTable(name, sum(file.rows or 0 for file in files), columns, files)


def scan(folder: Path, name: str) -> pl.LazyFrame:
    """Read a table of a card lazily, its splits in order."""
    paths = sorted((folder / DATA / name).glob("*.parquet"))
    return pl.concat([pl.scan_parquet(path, glob=False) for path in paths]) if paths else pl.LazyFrame()


def other_files(folder: Path, hashes: Hashes = NOT_KNOWN) -> tuple[FileFacts, ...]:
    """Describe what the release holds besides: the same tables in other forms, and whatever else it came with."""
    paths = sorted(path for path in (folder / FILES).rglob("*") if path.is_file())
    return tuple(file_facts(folder, path, hashes) for path in paths)


def file_facts(folder: Path, path: Path, hashes: Hashes, *, split: str = "") -> FileFacts:
    """Describe one file."""
    relative = path.relative_to(folder).as_posix()
    return FileFacts(relative, hashes.get(relative) or digest_file(path), path.stat().st_size, rows_of(path), split)


def rows_of(path: Path) -> int | None:
    """Count the rows of a table; None where a file is none."""
    if path.suffix == ".parquet":
        return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    if path.suffix == ".jsonl":
        with path.open("rb") as file:
            return sum(1 for line in file if line.strip())
    if path.suffix in {".csv", ".tsv"}:
        return int(scan_texts(path).select(pl.len()).collect().item())
    return None


def scan_texts(path: Path) -> pl.LazyFrame:
    """Read CSV or TSV lazily, every cell as text."""
    separator = "," if path.suffix == ".csv" else "\t"
    return pl.scan_csv(path, separator=separator, infer_schema=False, glob=False)


def described_files(tables: tuple[CardTable, ...], others: tuple[FileFacts, ...]) -> Iterator[FileFacts]:
    """Give every file of data."""
    for table in tables:
        yield from table.files
    yield from others
