"""The tables of a card folder as they are: files, hashes, rows, columns and types."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import msgspec
import polars as pl

from culturekit.cards.splits import DATA
from culturekit.storage.digests import digest_file

__all__ = ["FILES", "CardTable", "ColumnFacts", "FileFacts", "described_files", "other_files", "scan", "tables_in"]

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
        separator = "," if path.suffix == ".csv" else "\t"
        lazy = pl.scan_csv(path, separator=separator, infer_schema=False, glob=False)
        return int(lazy.select(pl.len()).collect().item())
    return None


def described_files(tables: tuple[CardTable, ...], others: tuple[FileFacts, ...]) -> Iterator[FileFacts]:
    """Give every file of data."""
    for table in tables:
        yield from table.files
    yield from others
