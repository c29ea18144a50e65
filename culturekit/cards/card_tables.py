"""The tables of a card folder as they are: files, hashes, rows, columns, types, and the concepts they are split by."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import msgspec
import polars as pl

from culturekit.storage.digests import digest, digest_file
from culturekit.storage.tables import save_parquet

DATA = "data"
_WHOLE = "full"
"""The split of a table that has only one."""

_COLUMN = "concept"
_NEVER_SPLIT = {"drops"}
_ITEMS = {"artifact_id", "prompt_id", "name", "text"}
"""A table that is split has one of these: its rows are things, not sums."""

_RESERVED = {"all", _WHOLE}
_MOST_SPLITS = 100


def write_splits(name: str, parquet: Path, folder: Path) -> list[Path]:
    """Write one table below `FOLDER/data/NAME`, a file for each concept where every row has one."""
    place = folder / DATA / name
    place.mkdir(parents=True)
    lazy = pl.scan_parquet(parquet, glob=False)
    written = []
    for split, concept in _splits_of(name, lazy).items():
        rows = lazy if concept is None else lazy.filter(pl.col(_COLUMN) == concept)
        written.append(place / f"{split}.parquet")
        save_parquet(rows.collect(), written[-1])
    return written


def _splits_of(name: str, lazy: pl.LazyFrame) -> Mapping[str, str | None]:
    """Give the split names of a table and the concept that each one holds."""
    schema = lazy.collect_schema()
    if name in _NEVER_SPLIT or schema.get(_COLUMN) != pl.String() or not _ITEMS & set(schema):
        return {_WHOLE: None}
    concepts = lazy.select(pl.col(_COLUMN).unique()).collect()[_COLUMN].to_list()
    if not concepts or None in concepts or len(concepts) > _MOST_SPLITS:
        return {_WHOLE: None}
    return dict(_named(sorted(concepts)))


def _named(concepts: list[str]) -> Iterator[tuple[str, str]]:
    """Name a split after its concept, in letters that every host takes; a clash is told apart by a hash."""
    seen: set[str] = set()
    for concept in concepts:
        name = re.sub(r"[^a-z0-9]+", "_", concept.lower()).strip("_")
        if not name or name in seen or name in _RESERVED or len(name) > 60:
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
    return tuple(_table_in(folder, name, hashes) for name in names)


def _table_in(folder: Path, name: str, hashes: Hashes) -> CardTable:
    """Describe one table; the files of it have the same columns."""
    paths = sorted((folder / DATA / name).glob("*.parquet"))
    files = tuple(_file_facts(folder, path, hashes, split=path.stem) for path in paths)
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
    return tuple(_file_facts(folder, path, hashes) for path in paths)


def _file_facts(folder: Path, path: Path, hashes: Hashes, *, split: str = "") -> FileFacts:
    """Describe one file."""
    relative = path.relative_to(folder).as_posix()
    return FileFacts(relative, hashes.get(relative) or digest_file(path), path.stat().st_size, _rows_of(path), split)


def _rows_of(path: Path) -> int | None:
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


_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "artifact_id": "the Wikidata item, or LLM: and a slug of the name where none is known",
        "qid": "the Wikidata item",
        "name": "what the artifact is called",
        "concept": "cuisine, landmarks, art, or another concept of the release",
        "subconcept": "a finer kind within the concept",
        "country": "ISO 3166-1 alpha-2 code of the country",
        "country_name": "English name of the country",
        "continent": "continent of the country",
        "source": "wikidata where a walk found it, llm where a model proposed it, list where a person's file names it",
        "popularity": "rank within country and concept, 1 for the best known",
        "popularity_source": "what the rank was made of",
        "path": "items from the root class to the artifact, as a walk found them",
        "country_order": "0 for the country that the item states first",
        "aliases": "other names",
        "verdict": "keep, or review where nobody kept it and it waits for a person to look at",
        "prompt_id": "stable id of the prompt",
        "text": "what a model is asked for",
        "negative_text": "what a model is asked to leave out",
        "benchmark": "the benchmark that the prompt belongs to",
        "kind": "whether the prompt names an artifact, a country, or neither",
        "group": "the group of people or places that the prompt is about",
        "language": "language of the text",
        "template_id": "the template that the prompt was made with",
        "key": "what was left out",
        "stage": "the stage that left it out",
        "reason": "why",
        "detail": "what the reason is about",
    }
)


def meaning_of(column: str) -> str:
    """Say what a column means; nothing where it is not one of ours."""
    return _MEANINGS.get(column, "")


_COUNTED = (
    "concept", "subconcept", "country", "continent", "source", "popularity_source", "kind", "benchmark", "language",
    "template_id", "group", "stage", "reason", "verdict",
)  # fmt: skip
"""Columns whose values are counted where a table has them."""

NOTHING = "(none)"
_MOST_VALUES = 300
_COEFFICIENTS = ("kappa", "alpha", "agreement", "icc", "correlation")


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
    columns = [column for column in _COUNTED if schema.get(column) == pl.String()]
    identities = [c for c in ("artifact_id", "qid", "name", "prompt_id", "text") if schema.get(c) == pl.String()]
    tallies = {column: _tally(lazy.select(pl.col(column))) for column in columns}
    listed = {column: values for column, values in tallies.items() if len(values) <= _MOST_VALUES}
    both = {"country", "concept"} <= set(columns) and "country" in listed and "concept" in listed
    return Counts(
        rows=int(lazy.select(pl.len()).collect().item()) if schema else 0,
        distinct={
            **{column: int(lazy.select(pl.col(column).n_unique()).collect().item()) for column in identities},
            **{column: len(values) for column, values in tallies.items() if column not in listed},
        },
        values=listed,
        hops=_tally(hops(lazy)) if schema.get("path") == pl.List(pl.String()) else {},
        country_concept=_crossed(lazy) if both else {},
    )


def hops(lazy: pl.LazyFrame) -> pl.LazyFrame:
    """Give each row's distance from its root: a path runs from the root to the artifact itself."""
    steps = pl.col("path").list.len()
    return lazy.select(pl.when(steps > 0).then((steps.cast(pl.Int64) - 1).cast(pl.String)).otherwise(None).alias("hop"))


def _tally(column: pl.LazyFrame) -> dict[str, int]:
    """Count the values of the only column of a frame, in order of the values."""
    name = column.collect_schema().names()[0]
    rows = column.group_by(pl.col(name).fill_null(NOTHING)).len().collect().rows()
    return dict(sorted(rows, key=lambda row: (len(row[0]), row[0]) if row[0].isdigit() else (1_000, row[0])))


def _crossed(lazy: pl.LazyFrame) -> dict[str, dict[str, int]]:
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
        wanted = pl.any_horizontal(pl.col("metric").str.contains(word, literal=True) for word in _COEFFICIENTS)
        kept = [
            c.name
            for c in table.columns
            if c.name in {"metric", "concept", "params", "value", "ci_low", "ci_high", "n"}
        ]
        yield from scan(folder, table.name).filter(wanted).select(kept).collect().to_dicts()
