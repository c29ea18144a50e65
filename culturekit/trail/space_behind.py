"""What lies behind a cultural space: its finished stages, found one from the other and known by their hashes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias

import polars as pl

from culturekit.builders.folded_names import folded
from culturekit.builders.space.space_files import read_space
from culturekit.errors import IntegrityError, UsageError
from culturekit.records.schemas import CANDIDATES, DECISIONS, DROPS, KEPT
from culturekit.records.tables import Table
from culturekit.storage.digests import digest_file
from culturekit.storage.manifest import Manifest, read_manifest
from culturekit.storage.tables import read_table
from culturekit.trail.stage_verdicts import reason_text
from culturekit.trail.upstream import recorded

_NEEDED = ("release", "filter", "extract", "ingest")
"""Kinds of stages without which a row cannot be walked back to the dump."""

_WITHIN = ("cspace.parquet", "cspace/cspace.parquet", "release/cspace.parquet")

ENTERED = frozenset({"added", "country added"})
"""Outcomes of proposals that made a row."""

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SpaceBehind:
    """A cultural space and the stages behind it by kind; `missing` says what of them could not be found, and why."""

    file: Path
    folders: Mapping[str, Path] = field(default_factory=dict)
    manifests: Mapping[str, Manifest] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @classmethod
    def found_at(cls, path: Path) -> Self:
        """Find a space from its table, its folder or the folder of its run, and what lies behind it."""
        file = _space_file(path)
        folders: dict[str, Path] = {}
        missing: list[str] = []
        _walk_from(file, folders, missing)
        missing += [f"no {kind} stage" for kind in _NEEDED if kind not in folders and not missing]
        manifests = {kind: manifest for kind, folder in folders.items() if (manifest := read_manifest(folder))}
        return cls(file, folders, manifests, tuple(missing))

    @property
    def space(self) -> pl.DataFrame:
        """The cultural space itself."""
        return read_space(self.file)[0]

    @property
    def graph(self) -> Path:
        """The graph that the candidates come from."""
        return self.folders["ingest"]

    def candidates(self, qids: Iterable[str]) -> dict[tuple[str, str], Row]:
        """Read candidates by item and concept."""
        return _rows_of(self.folders["extract"] / "candidates.parquet", CANDIDATES, "qid", qids)

    def decisions(self, qids: Iterable[str]) -> dict[tuple[str, str], str]:
        """Read what people decided about candidates, as verdicts, by item and concept."""
        if "review" not in self.folders:
            return {}
        wanted = pl.Series(sorted(set(qids)), dtype=pl.String).implode()
        table = read_table(self.folders["review"] / "decisions.parquet", DECISIONS)
        decided = table.filter(pl.col("counts"), pl.col("qid").is_in(wanted))
        verdict = pl.when(pl.col("decision") == "accept").then(pl.lit("keep")).otherwise(pl.lit("remove"))
        rows = decided.select("qid", "concept", verdict.alias("verdict")).iter_rows()
        return {(qid, concept): word for qid, concept, word in rows}

    def verdicts(self, qids: Iterable[str]) -> dict[tuple[str, str], tuple[str, str]]:
        """Read what became of candidates, and why, by item and concept."""
        folder, wanted = self.folders["filter"], list(qids)
        kept = _rows_of(folder / "kept.parquet", KEPT, "qid", wanted)
        dropped = _rows_of(folder / "drops.parquet", DROPS, "key", wanted)
        found = {key: ("remove", reason_text(row)) for key, row in dropped.items()}
        return found | {key: (row["verdict"], row["reason"]) for key, row in kept.items()}

    def proposals(self, cells: Iterable[tuple[str, str]]) -> dict[tuple[str, str, str], Row]:
        """Read proposals for some cells, by identifier and by folded name: the one that entered, or the last."""
        if "completion" not in self.folders:
            return {}
        wanted = pl.LazyFrame(sorted(set(cells)), schema={"concept": pl.String, "country": pl.String}, orient="row")
        rows = pl.scan_parquet(self.folders["completion"] / "proposals.parquet").join(wanted, on=["concept", "country"])
        found: dict[tuple[str, str, str], Row] = {}
        for row in rows.collect().sort("round", "name", maintain_order=True).iter_rows(named=True):
            for known_by in filter(None, (row["artifact_id"], folded(row["name"]))):
                place = (row["concept"], row["country"], known_by)
                if place not in found or found[place]["outcome"] not in ENTERED:
                    found[place] = row
        return found


def _space_file(path: Path) -> Path:
    """Find the table of a cultural space in what a user names."""
    if path.is_file():
        return path
    found = next((path / name for name in _WITHIN if (path / name).is_file()), None)
    if found is None:
        raise UsageError(
            "there is no cultural space here",
            where=str(path),
            expected=f"a run folder, or a folder with {_WITHIN[0]}",
            found="a folder without one" if path.is_dir() else "nothing",
        )
    return found


def _walk_from(file: Path, folders: dict[str, Path], missing: list[str]) -> None:
    """Begin at the table itself; it must be what its stage wrote."""
    manifest = read_manifest(file.parent)
    record = manifest.outputs.get(file.name) if manifest else None
    if record is None:
        missing.append(f"no manifest tells what {file.name} was made from")
        return
    found = digest_file(file)
    if found != record.sha256:
        raise IntegrityError(
            "not the cultural space that its stage wrote",
            where=str(file),
            expected=f"SHA-256 {record.sha256}",
            found=found,
            hint="Remove the folder and release again, or compare a copy that lies in a folder of its own.",
        )
    _walk(file.parent, folders, missing)


def _walk(folder: Path, folders: dict[str, Path], missing: list[str]) -> None:
    """Go from a stage to those it was made from, as far as they are there and still the same."""
    manifest = read_manifest(folder)
    if manifest is None:
        missing.append(f"{folder.name} has no manifest")
        return
    folders.setdefault(manifest.stage, folder)
    for role, record in sorted(manifest.inputs.items()):
        if not record.stage:
            continue
        try:
            place = recorded(folder, role)
        except IntegrityError as error:
            missing.append(f"{manifest.stage}: {error.problem}")
            continue
        above = place if place.is_dir() else place.parent
        if _hash_now(place) != record.sha256:
            missing.append(f"the {role} that {manifest.stage} was made from is no longer there, or is another one")
        elif above not in folders.values():
            _walk(above, folders, missing)


def _hash_now(place: Path) -> str:
    """Read from its manifest what a stage, or a file of one, is."""
    manifest = read_manifest(place if place.is_dir() else place.parent)
    if manifest is None:
        return ""
    if place.is_dir():
        return manifest.sha256
    record = manifest.outputs.get(place.name)
    return record.sha256 if record and place.is_file() else ""


def _rows_of(file: Path, table: Table, column: str, qids: Iterable[str]) -> dict[tuple[str, str], Row]:
    """Read the rows of some items by item and concept."""
    wanted = pl.Series(sorted(set(qids)), dtype=pl.String).implode()
    names = [name for name in table.columns if name not in {"aliases", "image", "lat", "lon"}]
    rows = pl.scan_parquet(file).filter(pl.col(column).is_in(wanted)).select(names).collect()
    return {(row[column], row["concept"]): row for row in rows.iter_rows(named=True)}
