"""An index as vectors and owners, read the plain way."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.storage.manifest import Manifest, read_manifest

__all__ = ["IndexVectors", "read_index", "vectors_of"]

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class IndexVectors:
    """Artifacts by number, and by channel the vectors that count, with the number of the artifact of each."""

    artifacts: list[dict[str, Any]]
    channels: dict[str, tuple[Vectors, NDArray[np.int64]]]


def read_index(folder: Path) -> IndexVectors:
    """Read all parts of an index without the rows that were removed."""
    manifest: Manifest | None = read_manifest(folder)
    shards = [] if manifest is None else list(manifest.notes.get("shards", []))
    artifacts = pl.read_parquet(folder / "artifacts.parquet").to_dicts()
    number = {row["artifact_id"]: place for place, row in enumerate(artifacts)}
    graves = set()
    if (folder / "tombstones.parquet").exists():
        graves = set(pl.read_parquet(folder / "tombstones.parquet").select("part", "row").iter_rows())
    parts: dict[str, list[tuple[Vectors, list[int]]]] = {}
    for place, name in enumerate(["vectors.npy", *shards]):
        ids = pl.read_parquet(folder / name.replace("vectors", "ids").replace(".npy", ".parquet")).sort("row")
        vectors = np.load(folder / name, allow_pickle=False)
        if len(vectors) != ids.height:
            raise ValueError(f"{name} has {len(vectors)} vectors for {ids.height} ids")
        for (channel,), own in ids.group_by("channel", maintain_order=True):
            rows = [row for row in own["row"].to_list() if (place, row) not in graves]
            owners = dict(own.select("row", "id").iter_rows())
            parts.setdefault(str(channel), []).append((vectors[rows], [number[owners[row]] for row in rows]))
    channels = {
        channel: (
            np.concatenate([vectors for vectors, _ in several]),
            np.array([one for _, owners in several for one in owners], np.int64),
        )
        for channel, several in parts.items()
    }
    return IndexVectors(artifacts, channels)


def vectors_of(folder: Path) -> tuple[list[str], Vectors]:
    """Read the vectors of images and the image each belongs to."""
    ids = pl.read_parquet(folder / "ids.parquet").sort("row")
    vectors: Vectors = np.load(folder / "vectors.npy", allow_pickle=False)
    if len(vectors) != ids.height or ids["row"].to_list() != list(range(ids.height)):
        raise ValueError(f"{len(vectors)} vectors for {ids.height} ids, or rows that are not 0, 1, 2 ...")
    return ids["id"].to_list(), vectors
