"""The folder of an index: artifacts, their vectors by channel, and the slices in which those stand."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.arrays import load_array
from culturekit.core.atomic import copy_file
from culturekit.core.digests import MANIFEST, Manifest, digest, known_digest, read_manifest
from culturekit.core.errors import IntegrityError
from culturekit.core.schemas import ARTIFACTS, SLICES, TOMBSTONES, VECTOR_IDS
from culturekit.core.tables import read_table, save_parquet, write_table
from culturekit.index.embedding.embedding import save_ordered
from culturekit.index.encoder import Encoder, Vectors

# What an index must hold to before anything is searched in it; whatever does not is refused with the reason.

_ROWS_AT_ONCE = 16_384
UNIT_WITHIN = 1e-3  # how far the norm of a vector may be from 1; half-precision encoders stay well within


def refused(problem: str, where: Path, *, expected: str = "", found: str = "") -> IntegrityError:
    """Say why an index is not opened."""
    return IntegrityError(problem, where=str(where), expected=expected, found=found, hint="Build the index again.")


def _check_files(folder: Path, *, verified: bool = False) -> Manifest:
    """Read the manifest, and check the size and, unless done before, the SHA-256 of every file that it lists."""
    manifest = read_manifest(folder)
    if manifest is None or manifest.stage != "index":
        found = "no manifest" if manifest is None else f"the stage {manifest.stage}"
        hint = "Make one with: culturekit index build"
        raise IntegrityError("not an index", where=str(folder), expected="a folder of the stage index", found=found,
                             hint=hint)  # fmt: skip
    absent = {"vectors.npy", "ids.parquet", "artifacts.parquet", "slices.parquet"} - set(manifest.outputs)
    if absent:
        raise refused(f"the manifest does not list {', '.join(sorted(absent))}", folder / MANIFEST)
    if digest({name: record.sha256 for name, record in manifest.outputs.items()}) != manifest.sha256:
        raise refused("the manifest was edited: its hashes do not add up", folder / MANIFEST)
    for name, record in manifest.outputs.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != record.bytes:
            found = f"{path.stat().st_size} bytes" if path.is_file() else "no file"
            raise refused("not what the index was built with", path, expected=f"{record.bytes} bytes", found=found)
        content = record.sha256 if verified else known_digest(path)
        if content != record.sha256:
            raise refused("not what the index was built with", path, expected=f"SHA-256 {record.sha256}", found=content)
    return manifest


def _check_rows(ids: pl.DataFrame, vectors: Vectors, where: Path) -> None:
    """Make sure that ids and vectors belong together."""
    if (
        not {"channel", "source"} <= set(ids.columns)
        or ids.select("channel", "source").null_count().sum_horizontal()[0]
    ):
        raise refused("the rows of the index do not say their channel and source", where)
    if vectors.ndim != 2 or vectors.dtype != np.float32 or len(vectors) != ids.height:
        raise refused(
            "the vectors and their ids do not belong together", where, expected=f"float32 ({ids.height}, dim)",
            found=f"{vectors.dtype} {vectors.shape}",
        )  # fmt: skip
    if ids["row"].to_list() != list(range(ids.height)):
        raise refused("the rows of ids.parquet are not numbered from 0 on", where)


def _check_vectors(vectors: Vectors, folder: Path, notes: Mapping[str, Any]) -> None:
    """Make sure that vectors have the encoder's length and are finite and of unit norm."""
    dim = notes.get("identity", {}).get("dim")
    if dim != vectors.shape[1]:
        raise refused("the vectors are not the encoder's", folder, expected=f"{dim} dimensions",
                      found=str(vectors.shape[1]))  # fmt: skip
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        part = np.asarray(vectors[start : start + _ROWS_AT_ONCE])
        norms = np.sqrt(np.einsum("nd,nd->n", part, part))
        wrong = ~(np.abs(norms - 1) <= UNIT_WITHIN)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise refused("a vector is not of unit norm", folder, expected=f"norm 1 within {UNIT_WITHIN}",
                          found=f"{norms[row]} in row {start + row}")  # fmt: skip


def differing(stated: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Name the fields in which two identities differ."""
    return [name for name in {**stated, **given} if stated.get(name) != given.get(name)]


# The parts of an index: what was built, what was appended since, and what no longer counts.

# what rows stand by; concept and country are the artifact's first
_ROW_ORDER = ("channel", "concept", "country", "artifact_id", "source")


def _in_index_order(rows: pl.DataFrame, artifacts: pl.DataFrame) -> pl.DataFrame:
    """Sort rows as an index keeps them.

    Args:
        rows: with channel, artifact_id and source; other columns are kept.
        artifacts: ARTIFACTS with every artifact of the rows.

    Returns:
        The rows in order, with the concept and country they stand under and `owner`, the artifact's row.
    """
    under = artifacts.select(
        "artifact_id", concept=pl.col("concepts").list.first(), country=pl.col("countries").list.first()
    ).with_row_index("owner")
    return rows.join(under, on="artifact_id", how="left", maintain_order="left").sort(_ROW_ORDER, maintain_order=True)


def _slices_of(ordered: pl.DataFrame) -> pl.DataFrame:
    numbered = ordered.with_row_index("place")
    runs = numbered.group_by("channel", "concept", "country", maintain_order=True).agg(
        start=pl.col("place").min(), stop=pl.col("place").max() + 1
    )
    return runs.select([pl.col(name).cast(dtype) for name, dtype in SLICES.schema.items()])


# files that each state of an index writes itself; vectors, their ids and slices pass on as they are
_OWN_OF_EACH = frozenset({"artifacts.parquet", "drops.parquet", "tombstones.parquet", "manifest.json", "run.json"})


def part_names(notes: Mapping[str, Any]) -> list[str]:
    """List the arrays of an index, the one it was built with first."""
    return ["vectors.npy", *notes.get("shards", [])]


def ids_name(vectors_name: str) -> str:
    """Name the table that says what the vectors of a part belong to."""
    return vectors_name.replace("vectors", "ids").replace(".npy", ".parquet")


def names_countries(folder: Path) -> bool:
    """Tell whether the texts of an index name the countries of artifacts."""
    manifest = read_manifest(folder)
    return bool(manifest and manifest.options.get("countries_in_texts"))


def stated_encoder(folder: Path) -> str:
    """Give the SPEC of the encoder that made an index; nothing where there is no index yet."""
    manifest = read_manifest(folder)
    return str(manifest.notes.get("encoder", "") if manifest else "")


def read_graves(folder: Path) -> pl.DataFrame:
    """Read which rows of which parts no longer count; there may be none."""
    path = folder / "tombstones.parquet"
    return read_table(path, TOMBSTONES) if path.exists() else pl.DataFrame(schema=TOMBSTONES.schema)


def _rows_of_parts(parts: Sequence[Vectors], rows: NDArray[np.int64]) -> Vectors:
    """Copy rows together, numbered through all parts; nothing else is held in memory."""
    starts = np.cumsum([0, *(len(part) for part in parts)])
    together = np.empty((len(rows), parts[0].shape[1]), np.float32)
    for number, part in enumerate(parts):
        chosen = np.flatnonzero((rows >= starts[number]) & (rows < starts[number + 1]))
        for start in range(0, len(chosen), _ROWS_AT_ONCE):
            some = chosen[start : start + _ROWS_AT_ONCE]
            together[some] = part[rows[some] - starts[number]]
    return together


def save_part_of_index(out: Path, number: int, rows: pl.DataFrame, vectors: Vectors, artifacts: pl.DataFrame) -> str:
    """Write one more part: rows (channel, artifact_id, source) and their vectors, in the order of an index."""
    name = f"vectors-{number:04d}.npy"
    _, ids = _save_in_order(out / name, rows, vectors, artifacts)
    save_parquet(ids, out / ids_name(name))
    return name


def _save_in_order(
    path: Path, rows: pl.DataFrame, vectors: Vectors, artifacts: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Write vectors in the order of an index; give their rows in that order, and the table of their ids."""
    ordered = _in_index_order(rows.with_row_index("given"), artifacts)
    save_ordered(path, vectors, ordered["given"].to_numpy())
    ids = ordered.with_row_index("row").select(pl.col("row").cast(pl.UInt32), "channel", "source", id="artifact_id")
    return ordered, ids.select(*VECTOR_IDS.columns, "channel", "source")


def take_over(folder: Path, out: Path) -> None:
    """Give a new folder the vectors of another: as links where the disk can, as copies elsewhere."""
    for path in sorted(folder.iterdir()):
        if path.name in _OWN_OF_EACH or not path.is_file() or path.suffix not in {".npy", ".parquet"}:
            continue
        to = out / path.name
        to.unlink(missing_ok=True)
        try:
            os.link(path, to)
        except OSError:
            copy_file(path, to)


@dataclass(frozen=True, slots=True)
class _Channel:
    """The vectors of one channel."""

    vectors: Vectors  # float32 (n, dim), unit norm; memory-mapped where the index has one part
    owners: NDArray[np.int64]  # int64 (n,), the row of `OpenIndex.artifacts` that each vector belongs to
    slices: pl.DataFrame  # concept, country, start and stop: rows of `vectors` that stand under them
    sources: pl.Series  # what each vector was made of: a reference's image_id, or the text


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """An index to search in."""

    artifacts: pl.DataFrame  # ARTIFACTS by id, those without a vector too
    channels: Mapping[str, _Channel]  # by name: `image`, `text`
    notes: Mapping[str, Any]  # what the manifest says: the encoder's SPEC and identity, its caveat, channels, templates
    folder: Path  # where it lies

    @property
    def encoder(self) -> str:
        """The SPEC of the encoder that made the vectors."""
        return str(self.notes["encoder"])


def write_index(out: Path, rows: pl.DataFrame, vectors: Vectors, artifacts: pl.DataFrame) -> None:
    """Write the tables and vectors of an index; the manifest is the stage's to write.

    Args:
        out: the folder.
        rows: channel, artifact_id and source of each vector, in any order.
        vectors: float32 (n, dim), unit norm, in the order of `rows`.
        artifacts: ARTIFACTS.
    """
    artifacts = artifacts.sort("artifact_id")
    ordered, ids = _save_in_order(out / "vectors.npy", rows, vectors, artifacts)
    write_table(out, VECTOR_IDS, ids)
    write_table(out, ARTIFACTS, artifacts)
    write_table(out, SLICES, _slices_of(ordered))


def open_index(folder: Path, *, verified: bool = False) -> OpenIndex:
    """Open an index, or refuse it with the reason.

    Args:
        folder: what `index build` wrote, with what was appended to it and removed from it since.
        verified: the contents were checked already in this run, by the process that gives out the work; only
            sizes are looked at.
    """
    manifest = _check_files(folder, verified=verified)
    artifacts = read_table(folder / "artifacts.parquet", ARTIFACTS)
    if artifacts["artifact_id"].to_list() != sorted(artifacts["artifact_id"].to_list()):
        raise refused("the artifacts of the index are out of order", folder)
    rows, vectors = _joined_parts(folder, manifest.notes, artifacts)
    if not verified:
        _check_vectors(vectors, folder, manifest.notes)
    return OpenIndex(artifacts, dict(_channels_of(rows, vectors)), manifest.notes, folder)


def _joined_parts(folder: Path, notes: Mapping[str, Any], artifacts: pl.DataFrame) -> tuple[pl.DataFrame, Vectors]:
    """Open all parts of an index as one, rows in order; an index of one part stays on disk."""
    parts = [_open_part(folder, name, artifacts) for name in part_names(notes)]
    if not read_table(folder / "slices.parquet", SLICES).equals(_slices_of(parts[0][0])):
        raise refused("the slices of the index are not those of its rows", folder / "slices.parquet")
    graves = read_graves(folder)
    if len(parts) == 1 and graves.is_empty():
        return parts[0]
    rows = pl.concat([
        rows.with_row_index("row").with_columns(pl.col("row").cast(pl.UInt32), part=pl.lit(number, pl.UInt32))
        for number, (rows, _) in enumerate(parts)
    ]).with_row_index("given")  # fmt: skip
    rows = rows.join(graves, on=["part", "row"], how="anti", maintain_order="left")
    rows = rows.select("given", "channel", "artifact_id", "source")
    ordered = _in_index_order(rows, artifacts)
    return ordered, _rows_of_parts([vectors for _, vectors in parts], ordered["given"].to_numpy())


def _open_part(folder: Path, name: str, artifacts: pl.DataFrame) -> tuple[pl.DataFrame, Vectors]:
    """Open one part of an index: its rows, with the places they stand under, and its vectors on disk."""
    ids = read_table(folder / ids_name(name), VECTOR_IDS)
    vectors = load_array(folder / name)
    _check_rows(ids, vectors, folder / name)
    rows = ids.select("channel", "source", artifact_id="id")
    ordered = _in_index_order(rows, artifacts)
    if ordered["concept"].has_nulls():
        unknown = ordered.filter(pl.col("concept").is_null())["artifact_id"][0]
        raise refused(f"a vector belongs to the artifact {unknown}, which is not in artifacts.parquet", folder / name)
    if not ordered.select(rows.columns).equals(rows):
        raise refused("the rows of the index are out of order", folder / name)
    return ordered, vectors


def _channels_of(rows: pl.DataFrame, vectors: Vectors) -> Iterator[tuple[str, _Channel]]:
    """Part an index by channel; rows of a channel stand together."""
    owners, start = rows["owner"].to_numpy().astype(np.int64), 0
    for (name,), group in rows.group_by("channel", maintain_order=True):
        stop = start + group.height
        slices = _slices_of(group).select("concept", "country", "start", "stop")
        yield str(name), _Channel(vectors[start:stop], owners[start:stop], slices, group["source"])
        start = stop


def check_identity(index: OpenIndex, encoder: Encoder) -> None:
    """Make sure that an encoder is the one that made an index; otherwise name what differs."""
    stated, given = dict(index.notes.get("identity", {})), encoder.identity.as_options()
    if stated != given:
        fields = differing(stated, given)
        raise IntegrityError(
            "the encoder is not the one that built the index",
            where=str(index.folder),
            expected="; ".join(f"{name} {stated.get(name)!r}" for name in fields),
            found="; ".join(f"{name} {given.get(name)!r}" for name in fields),
            hint="Use that encoder, or build the index again with this one.",
        )
