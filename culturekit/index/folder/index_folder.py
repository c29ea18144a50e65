"""The folder of an index: artifacts, their vectors by channel, and the slices in which those stand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import IntegrityError
from culturekit.index.encoder import Encoder, Vectors
from culturekit.index.folder.index_checks import check_files, check_rows, check_vectors, differing, refused
from culturekit.index.folder.index_parts import in_index_order, rows_of_parts, slices_of
from culturekit.records.schemas import ARTIFACTS, SLICES, TOMBSTONES, VECTOR_IDS
from culturekit.storage.arrays import save_rows
from culturekit.storage.tables import read_table, write_table

__all__ = ["Channel", "OpenIndex", "check_identity", "open_index", "write_index"]

ROWS_AT_ONCE = 16_384


@dataclass(frozen=True, slots=True)
class Channel:
    """The vectors of one channel.

    Attributes:
        vectors: float32 (n, dim), unit norm; memory-mapped where the index has one part.
        owners: int64 (n,), the row of `OpenIndex.artifacts` that each vector belongs to.
        slices: concept, country, start and stop: rows of `vectors` that stand under them.
        sources: what each vector was made of: a reference's image_id, or the text.
    """

    vectors: Vectors
    owners: NDArray[np.int64]
    slices: pl.DataFrame
    sources: pl.Series


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """An index to search in.

    Attributes:
        artifacts: ARTIFACTS by id, those without a vector too.
        channels: by name: `image`, `text`.
        notes: what the manifest says: the encoder's SPEC and identity, its caveat, channels, templates.
        folder: where it lies.
    """

    artifacts: pl.DataFrame
    channels: Mapping[str, Channel]
    notes: Mapping[str, Any]
    folder: Path

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
    ordered = in_index_order(rows.with_row_index("given"), artifacts)
    given = ordered["given"].to_numpy()
    parts = (vectors[given[start : start + ROWS_AT_ONCE]] for start in range(0, len(given), ROWS_AT_ONCE))
    save_rows(out / "vectors.npy", parts, shape=(len(given), vectors.shape[1]), dtype=np.float32)
    ids = ordered.with_row_index("row").select(pl.col("row").cast(pl.UInt32), "channel", "source", id="artifact_id")
    write_table(out, VECTOR_IDS, ids.select("row", "id", "channel", "source"))
    write_table(out, ARTIFACTS, artifacts)
    write_table(out, SLICES, slices_of(ordered))


def open_index(folder: Path, *, verified: bool = False) -> OpenIndex:
    """Open an index, or refuse it with the reason.

    Args:
        folder: what `index build` wrote, with what was appended to it and removed from it since.
        verified: the contents were checked already in this run, by the process that gives out the work; only
            sizes are looked at.
    """
    manifest = check_files(folder, verified=verified)
    artifacts = read_table(folder / "artifacts.parquet", ARTIFACTS)
    if artifacts["artifact_id"].to_list() != sorted(artifacts["artifact_id"].to_list()):
        raise refused("the artifacts of the index are out of order", folder)
    rows, vectors = joined_parts(folder, manifest.notes, artifacts)
    if not verified:
        check_vectors(vectors, folder, manifest.notes)
    return OpenIndex(artifacts, dict(channels_of(rows, vectors)), manifest.notes, folder)


def joined_parts(folder: Path, notes: Mapping[str, Any], artifacts: pl.DataFrame) -> tuple[pl.DataFrame, Vectors]:
    """Open all parts of an index as one, rows in order; an index of one part stays on disk."""
    names = ["vectors.npy", *notes.get("shards", [])]
    parts = [open_part(folder, name, artifacts) for name in names]
    check_slices(folder, parts[0][0])
    graves = folder / "tombstones.parquet"
    if len(parts) == 1 and not graves.exists():
        return parts[0]
    rows = pl.concat([
        rows.with_row_index("row").with_columns(pl.col("row").cast(pl.UInt32), part=pl.lit(number, pl.UInt32))
        for number, (rows, _) in enumerate(parts)
    ]).with_row_index("given")  # fmt: skip
    if graves.exists():
        rows = rows.join(read_table(graves, TOMBSTONES), on=["part", "row"], how="anti", maintain_order="left")
    rows = rows.select("given", "channel", "artifact_id", "source")
    ordered = in_index_order(rows, artifacts)
    return ordered, rows_of_parts([vectors for _, vectors in parts], ordered["given"].to_numpy())


def open_part(folder: Path, name: str, artifacts: pl.DataFrame) -> tuple[pl.DataFrame, Vectors]:
    """Open one part of an index: its rows, with the places they stand under, and its vectors on disk."""
    ids = read_table(folder / name.replace("vectors", "ids").replace(".npy", ".parquet"), VECTOR_IDS)
    try:
        vectors: Vectors = np.load(folder / name, mmap_mode="r", allow_pickle=False)
    except (FileNotFoundError, ValueError) as error:
        raise IntegrityError("not an array of vectors", where=str(folder / name), found=str(error)) from error
    check_rows(ids, vectors, folder / name)
    rows = ids.select("channel", "source", artifact_id="id")
    ordered = in_index_order(rows, artifacts)
    if ordered["concept"].has_nulls():
        unknown = ordered.filter(pl.col("concept").is_null())["artifact_id"][0]
        raise refused(f"a vector belongs to the artifact {unknown}, which is not in artifacts.parquet", folder / name)
    if not ordered.select(rows.columns).equals(rows):
        raise refused("the rows of the index are out of order", folder / name)
    return ordered, vectors


def check_slices(folder: Path, rows: pl.DataFrame) -> None:
    """Make sure that the slices are those of the rows."""
    if not read_table(folder / "slices.parquet", SLICES).equals(slices_of(rows)):
        raise refused("the slices of the index are not those of its rows", folder / "slices.parquet")


def channels_of(rows: pl.DataFrame, vectors: Vectors) -> Iterator[tuple[str, Channel]]:
    """Part an index by channel; rows of a channel stand together."""
    owners, start = rows["owner"].to_numpy().astype(np.int64), 0
    for (name,), own in rows.group_by("channel", maintain_order=True):
        stop = start + own.height
        slices = slices_of(own).select("concept", "country", "start", "stop")
        yield str(name), Channel(vectors[start:stop], owners[start:stop], slices, own["source"])
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
