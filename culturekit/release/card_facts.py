"""Every number of a card, computed from its tables and the manifests it carries, and from nothing else."""

import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias, TypeVar

import msgspec
import polars as pl

from culturekit.builders.space.checked import check_lines
from culturekit.core.atomic import copy_file
from culturekit.core.digests import (
    JOURNAL,
    MANIFEST,
    RUN_RECORD,
    Manifest,
    canonical_json,
    digest,
    digest_file,
    digest_tree,
    indented_json,
    read_manifest,
)
from culturekit.core.errors import CultureKitError, IntegrityError, UsageError
from culturekit.core.inputs import manifest_of, upstream
from culturekit.core.schemas import SPACE_CHECK
from culturekit.core.stage import UNDER_REVIEW
from culturekit.core.tables import save_parquet

# The tables of a card folder as they are: files, hashes, rows, columns, types, and the concepts they are split by.

DATA = "data"
_WHOLE = "full"  # the split of a table that has only one

_COLUMN = "concept"
_NEVER_SPLIT = {"drops"}
_ITEMS = {"artifact_id", "prompt_id", "name", "text"}
"""A table that is split has one of these: its rows are things, not sums."""

_RESERVED = {"all", _WHOLE}
_MOSTSPLITS = 100


def write_splits(name: str, parquet: Path, folder: Path) -> list[Path]:
    """Write one table below `FOLDER/data/NAME`, a file for each concept where every row has one."""
    target = folder / DATA / name
    target.mkdir(parents=True)
    lazy = pl.scan_parquet(parquet, glob=False)
    written = []
    for split, concept in _splits_of(name, lazy).items():
        rows = lazy if concept is None else lazy.filter(pl.col(_COLUMN) == concept)
        written.append(target / f"{split}.parquet")
        save_parquet(rows.collect(), written[-1])
    return written


def _splits_of(name: str, lazy: pl.LazyFrame) -> Mapping[str, str | None]:
    """Give the split names of a table and the concept that each one holds.

    They are in letters that every host takes; a clash is told apart by a hash.
    """
    schema = lazy.collect_schema()
    if name in _NEVER_SPLIT or schema.get(_COLUMN) != pl.String() or not _ITEMS & set(schema):
        return {_WHOLE: None}
    concepts = lazy.select(pl.col(_COLUMN).unique()).collect()[_COLUMN].to_list()
    if not concepts or None in concepts or len(concepts) > _MOSTSPLITS:
        return {_WHOLE: None}
    splits: dict[str, str | None] = {}
    for concept in sorted(concepts):
        split = re.sub(r"[^a-z0-9]+", "_", concept.lower()).strip("_")
        if not split or split in {*splits, *_RESERVED} or len(split) > 60:
            split = f"{split[:40]}_{digest(concept)[:8]}".strip("_")
        splits[split] = concept
    return splits


FILES = "files"

Value = TypeVar("Value")
Hashes: TypeAlias = Mapping[str, str]
NOT_KNOWN: Hashes = MappingProxyType({})  # hashes of files by path, where they were taken already


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
    data = folder / DATA
    names = sorted(path.name for path in data.iterdir() if path.is_dir()) if data.is_dir() else []
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


def _file_facts(folder: Path, path: Path, hashes: Hashes, *, split: str = "") -> FileFacts:
    """Describe one file; its rows where it is a table."""
    relative, rows = path.relative_to(folder).as_posix(), None
    if path.suffix == ".jsonl":
        with path.open("rb") as file:
            rows = sum(1 for line in file if line.strip())
    elif path.suffix in {".parquet", ".csv", ".tsv"}:
        lazy = pl.scan_parquet(path, glob=False) if path.suffix == ".parquet" else scan_texts(path)
        rows = int(lazy.select(pl.len()).collect().item())
    return FileFacts(relative, hashes.get(relative) or digest_file(path), path.stat().st_size, rows, split)


def scan_texts(path: Path) -> pl.LazyFrame:
    """Read CSV or TSV lazily, every cell as text."""
    separator = "," if path.suffix == ".csv" else "\t"
    return pl.scan_csv(path, separator=separator, infer_schema=False, glob=False)


def described_files(tables: tuple[CardTable, ...], others: tuple[FileFacts, ...]) -> Iterator[FileFacts]:
    """Give every file of data."""
    for table in tables:
        yield from table.files
    yield from others


MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "artifact_id": "the Wikidata item, or LLM: or list: and a slug of the name where none is known",
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
    crossed: dict[str, dict[str, int]] = {}
    if {"country", "concept"} <= listed.keys():
        pair = [pl.col("country").fill_null(NOTHING), pl.col("concept").fill_null(NOTHING)]
        for country, concept, rows in sorted(lazy.group_by(pair).len().collect().rows()):
            crossed.setdefault(country, {})[concept] = rows
    steps = pl.col("path").list.len()  # a path runs from the root to the artifact itself
    hop = pl.when(steps > 0).then((steps.cast(pl.Int64) - 1).cast(pl.String)).otherwise(None).alias("hop")
    return Counts(
        rows=int(lazy.select(pl.len()).collect().item()) if schema else 0,
        distinct={
            **{column: int(lazy.select(pl.col(column).n_unique()).collect().item()) for column in identities},
            **{column: len(values) for column, values in tallies.items() if column not in listed},
        },
        values=listed,
        hops=_tally(lazy.select(hop)) if schema.get("path") == pl.List(pl.String()) else {},
        country_concept=crossed,
    )


def _tally(column: pl.LazyFrame) -> dict[str, int]:
    """Count the values of the only column of a frame, in order of the values."""
    name = column.collect_schema().names()[0]
    rows = column.group_by(pl.col(name).fill_null(NOTHING)).len().collect().rows()
    return dict(sorted(rows, key=lambda row: (len(row[0]), row[0]) if row[0].isdigit() else (1_000, row[0])))


def agreement_in(folder: Path, tables: Sequence[CardTable]) -> Iterator[Mapping[str, object]]:
    """Take the coefficients of agreement that the release's own table of scores has."""
    for table in tables:
        names = [column.name for column in table.columns]
        if table.name in {"scores", "agreement"} and {"metric", "value"} <= set(names):
            wanted = pl.any_horizontal(pl.col("metric").str.contains(word, literal=True) for word in _COEFFICIENTS)
            kept = [
                name for name in names if name in {"metric", "concept", "params", "value", "ci_low", "ci_high", "n"}
            ]
            yield from scan(folder, table.name).filter(wanted).select(kept).collect().to_dicts()


# What lies in a release folder, and what of it goes into a card.

SUMS = "SHA256SUMS"
SPLITS = "splits"  # where a release has its own tables by concept; a card has the same rows below `data/`

_DESCRIBED = {".parquet", ".jsonl", ".csv", ".json", ".tsv", ".txt", ".md", ".yaml", ".nt", ".ttl", ".jsonld"}
DESCRIPTIVE = {MANIFEST, RUN_RECORD, SUMS}  # files that say what a folder is, and are no part of what it holds

_TABLE_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_-]*$")
_PLAIN_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._ +-]*$")


@dataclass(frozen=True, slots=True)
class ReleaseFiles:
    """The manifest of a release, its tables by name, its other files, and what is left out, as relative paths."""

    manifest: Manifest
    tables: dict[str, Path]
    others: tuple[str, ...]
    left_out: tuple[str, ...]


def release_files(folder: Path) -> ReleaseFiles:
    """Look through a finished release and hold it against its manifest.

    Raises:
        IntegrityError: a file is not the one of the manifest, or is a link.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise UsageError(
            "not a finished release", where=str(folder),
            expected="a folder with a manifest.json, as cspace release and prompts build write it",
        )  # fmt: skip
    paths = list(plain_files(folder))
    for name, record in manifest.outputs.items():
        path = folder / name
        found = digest_file(path) if path.is_file() else digest_tree(path)[0] if path.is_dir() else "no such file"
        if found != record.sha256:
            raise IntegrityError(
                "a file of the release is not the one its manifest names", where=str(path),
                expected=f"SHA-256 {record.sha256}", found=found, hint="Run the release again.",
            )  # fmt: skip
    tables, others, left_out = {}, [], []
    for relative in paths:
        path = Path(relative)
        if relative in DESCRIPTIVE or path.parts[0] == JOURNAL or path.match(f"{SPLITS}/*.parquet"):
            continue
        if path.suffix == ".parquet" and len(path.parts) == 1 and _TABLE_NAME.match(path.stem):
            tables[path.stem] = folder / path
        elif path.suffix in _DESCRIBED and all(map(_PLAIN_NAME.match, path.parts)):
            others.append(relative)
        else:
            left_out.append(relative)
    if not tables:
        raise UsageError("nothing to describe", where=str(folder), expected="at least one Parquet table in the folder")
    return ReleaseFiles(manifest, tables, tuple(others), tuple(left_out))


def plain_files(folder: Path) -> Iterator[str]:
    """List the files below a folder by relative path, in order; links and devices are refused.

    Raises:
        IntegrityError: something below the folder is no plain file.
    """
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            continue
        if not stat.S_ISREG(mode):
            raise IntegrityError(
                "a release holds plain files only", where=str(path), found="a link, or something that is no file"
            )
        yield path.relative_to(folder).as_posix()


MANIFESTS = "manifests"


def carry_manifests(release: Path, folder: Path) -> None:
    """Copy the manifest of a release, and of every stage behind it that is still where its run found it."""
    target = folder / MANIFESTS
    target.mkdir()
    for number, stage in enumerate(_chain(release), start=1):
        manifest = manifest_of(stage)
        copy = target / f"{number:02}-{manifest.stage}"
        copy.mkdir()
        copy_file(stage / MANIFEST, copy / MANIFEST)


def keys_behind(release: Path) -> list[str]:
    """Give the keys of the stages that a card of a release would carry."""
    return [manifest_of(stage).key for stage in _chain(release)]


def _chain(release: Path) -> Iterator[Path]:
    """Give stage folders from the release back to the dump, each once."""
    waiting, seen = [release], set()
    while waiting:
        folder = waiting.pop(0)
        manifest = manifest_of(folder)
        if manifest.key in seen:
            continue
        seen.add(manifest.key)
        yield folder
        for role in sorted(role for role, record in manifest.inputs.items() if record.stage):
            try:
                path = upstream(folder, role)
            except CultureKitError:  # the card says which stages it could not find
                continue
            waiting.append(path if path.is_dir() else path.parent)


def carried_manifests(folder: Path) -> tuple[Manifest, ...]:
    """Read the manifests of a card, the release's own first.

    Raises:
        IntegrityError: one cannot be read, or there is none.
    """
    source = folder / MANIFESTS
    paths = sorted(path for path in source.iterdir() if path.is_dir()) if source.is_dir() else []
    if not paths:
        raise IntegrityError("the card carries no manifest", where=str(source), hint="Build the card again.")
    return tuple(manifest for manifest in map(read_manifest, paths) if manifest is not None)


FACTS = "facts.json"

_MAIN = ("cspace", "prompts")  # tables that a release is about, the first that it has

_INGEST = "ingest"
_DUMP_ROLE = re.compile(r"^dump(-\d+)?$")
_DATE = re.compile(r"(?<!\d)(20\d\d)-?([01]\d)-?([0-3]\d)(?!\d)")

_JUDGING = re.compile(
    r"^(judge|model|models|llm|task|revision|critic|verifier|proposer|popularity|templates|wordings?|encoder)$"
    r"|(_|^)(model|wording|judge|llm)(_|$)"
)
"""Options that say who answered, and to which words."""


class Setting(msgspec.Struct, frozen=True):
    """An option that decides what a stage said."""

    name: str
    value: str


class Source(msgspec.Struct, frozen=True):
    """A file that a stage read and no stage made, by its content."""

    role: str
    name: str
    sha256: str


class StageFacts(msgspec.Struct, frozen=True):
    """A stage behind the release."""

    stage: str
    key: str
    code: Mapping[str, str]
    packages: Mapping[str, str]
    seeds: Mapping[str, int]
    counts: Mapping[str, int]
    notes: Mapping[str, str]
    settings: tuple[Setting, ...]
    sources: tuple[Source, ...]


class Dump(msgspec.Struct, frozen=True):
    """A dump of Wikidata; its date as far as its name tells it."""

    name: str
    sha256: str
    date: str


class Drop(msgspec.Struct, frozen=True):
    """How many things a stage left out for one reason."""

    stage: str
    reason: str
    count: int


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a card says that people did not write."""

    format: str = "culturekit card 1"
    release: str
    tables: tuple[CardTable, ...]
    others: tuple[FileFacts, ...]
    counts: Mapping[str, Counts]
    stages: tuple[StageFacts, ...]
    not_at_hand: tuple[tuple[str, str, str], ...]
    dumps: tuple[Dump, ...]
    drops: tuple[Drop, ...]
    agreement: tuple[Mapping[str, object], ...]
    checked: tuple[tuple[str, str, str, str], ...] = ()

    def encode(self) -> bytes:
        """Write the facts for people and machines."""
        return indented_json(self)

    @property
    def settings(self) -> tuple[tuple[str, Setting], ...]:
        """Give the models and wordings, each with its stage."""
        return tuple((stage.stage, setting) for stage in self.stages for setting in stage.settings)

    @property
    def sources(self) -> tuple[tuple[str, Source], ...]:
        """Give the files that stages read, such as wordings and lists of countries."""
        return tuple((stage.stage, source) for stage in self.stages for source in stage.sources)

    @property
    def under_review(self) -> Mapping[str, int]:
        """Count, by reason, the artifacts that a release took in although they wait for a person to look at."""
        begin = f"{UNDER_REVIEW} / "
        return {
            name.removeprefix(begin): int(count)
            for stage in self.stages
            for name, count in stage.notes.items()
            if name.startswith(begin)
        }

    @property
    def main(self) -> CardTable:
        """The table that the release is about."""
        rank = {name: number for number, name in enumerate(_MAIN)}
        return min(self.tables, key=lambda table: (rank.get(table.name, len(_MAIN)), -table.rows, table.name))

    @property
    def dump_dated(self) -> bool:
        """Tell whether every dump says its date."""
        return bool(self.dumps) and all(dump.date for dump in self.dumps)


def facts_of(folder: Path, hashes: Mapping[str, str] = NOT_KNOWN) -> Facts:
    """Compute what a card folder holds; files whose `hashes` are known are not hashed again.

    Raises:
        IntegrityError: the manifests cannot be read.
        pl.exceptions.PolarsError: a table cannot be read.
    """
    manifests = carried_manifests(folder)
    tables = tables_in(folder, hashes)
    others = sorted(path for path in (folder / FILES).rglob("*") if path.is_file())
    known = {(m.stage, m.sha256) for m in manifests}
    known |= {(m.stage, output.sha256) for m in manifests for output in m.outputs.values()}
    inputs = [record for m in manifests for record in m.inputs.values() if record.stage]
    agreed = [
        {"stage": m.stage, "note": key, "value": value}
        for m in manifests
        for key, value in sorted(m.notes.items())
        if "agreement" in key
    ]
    drops = ((m.stage, *each) for m in manifests for each in sorted(m.drops.items(), key=lambda one: (-one[1], one[0])))
    checked = any(table.name == SPACE_CHECK.name for table in tables)
    return Facts(
        release=manifests[0].key, tables=tables, others=tuple(_file_facts(folder, path, hashes) for path in others),
        counts={table.name: count_table(folder, table.name) for table in tables}, stages=_stages_of(manifests),
        not_at_hand=tuple(sorted({
            (each.stage, each.name, each.sha256) for each in inputs if (each.stage, each.sha256) not in known
        })),
        dumps=_dumps_of(manifests), drops=tuple(Drop(*each) for each in drops),
        agreement=(*agreement_in(folder, tables), *agreed),
        checked=tuple(check_lines(scan(folder, SPACE_CHECK.name).collect())) if checked else (),
    )  # fmt: skip


def _stages_of(manifests: Sequence[Manifest]) -> tuple[StageFacts, ...]:
    """Describe the stages, the release's own first; sources are inputs that no stage made, the dump apart."""
    return tuple(
        StageFacts(
            manifest.stage, manifest.key, _sorted(manifest.code), _sorted(manifest.packages), _sorted(manifest.seeds),
            _sorted(manifest.counts), dict(sorted(_flattened(manifest.notes))), tuple(_settings_of(manifest.options)),
            tuple(
                Source(role, record.name, record.sha256)
                for role, record in sorted(manifest.inputs.items())
                if not record.stage and not (manifest.stage == _INGEST and _DUMP_ROLE.match(role))
            ),
        )
        for manifest in manifests
    )  # fmt: skip


def _sorted(counts: Mapping[str, Value]) -> dict[str, Value]:
    return dict(sorted(counts.items()))


def _flattened(notes: Mapping[str, object], within: str = "") -> Iterator[tuple[str, str]]:
    """Give what a stage noted, at any depth, each by its path."""
    for name, value in notes.items():
        path = f"{within} / {name}" if within else name
        if isinstance(value, Mapping):
            yield from _flattened(value, path)
        elif isinstance(value, list):
            yield from ((f"{path} / {number}", _as_text(one)) for number, one in enumerate(value, start=1))
        else:
            yield path, _as_text(value)


def _as_text(value: object) -> str:
    """Write a value as text."""
    return value if isinstance(value, str) else canonical_json(value).decode()


def _settings_of(options: Mapping[str, object], within: str = "") -> Iterator[Setting]:
    """Find the options that name a model, a task or a wording, at any depth."""
    for name, value in sorted(options.items()):
        path = f"{within}.{name}" if within else name
        if _JUDGING.search(name) and value is not None:
            yield Setting(path, _as_text(value))
        elif isinstance(value, Mapping) and name != "concepts":
            yield from _settings_of(value, path)


def _dumps_of(manifests: Sequence[Manifest]) -> tuple[Dump, ...]:
    """Find the dumps behind a release, in the order in which they were read."""
    return tuple(
        Dump(record.name, record.sha256, "-".join(found.groups()) if (found := _DATE.search(record.name)) else "")
        for manifest in manifests
        for role, record in sorted(manifest.inputs.items(), key=lambda item: (len(item[0]), item[0]))
        if manifest.stage == _INGEST and _DUMP_ROLE.match(role)
    )
