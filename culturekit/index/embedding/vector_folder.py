"""A data set of vectors on disk: `vectors.npy` and, in row order, `ids.parquet`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from culturekit.errors import IntegrityError
from culturekit.index.encoder import Vectors
from culturekit.records.schemas import VECTOR_IDS
from culturekit.storage.arrays import save_array
from culturekit.storage.tables import read_table, write_table

__all__ = ["load_vectors", "save_vectors"]

ROWS_AT_ONCE = 16_384


def save_vectors(out: Path, vectors: Vectors, ids: list[str]) -> None:
    """Write unit vectors, float32 (n, dim), and what each belongs to."""
    save_array(out / "vectors.npy", vectors.astype(np.float32, copy=False))
    rows = pl.DataFrame({"row": range(len(ids)), "id": ids}, schema=VECTOR_IDS.schema)
    write_table(out, VECTOR_IDS, rows)


def load_vectors(folder: Path) -> tuple[Vectors, list[str]]:
    """Open the vectors of a folder, memory-mapped, with the id of each, in whatever order the ids stand."""
    try:
        vectors: Vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
    except (FileNotFoundError, ValueError) as error:
        raise IntegrityError("not a folder of vectors", where=str(folder), found=str(error)) from error
    table = read_table(folder / "ids.parquet", VECTOR_IDS).sort("row")
    ids = table["id"].to_list()
    if not (table["row"] == pl.int_range(table.height, dtype=pl.UInt32, eager=True)).all():
        raise IntegrityError(
            "an id says which vector is its own",
            where=str(folder / "ids.parquet"),
            expected="a column row that counts the vectors from 0",
            found=f"from {table['row'].min()!r} to {table['row'].max()!r}",
        )
    if vectors.ndim != 2 or vectors.dtype != np.float32 or len(vectors) != len(ids):
        raise IntegrityError(
            "the vectors and their ids do not belong together",
            where=str(folder),
            expected=f"float32 ({len(ids)}, dim)",
            found=f"{vectors.dtype} {vectors.shape}",
        )
    check_directions(vectors, ids, folder)
    return vectors, ids


def check_directions(vectors: Vectors, ids: Sequence[str], folder: Path) -> None:
    """Refuse vectors that point nowhere: no cosine with them is a number, and no distance says anything."""
    wrong: list[int] = []
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        block = vectors[start : start + ROWS_AT_ONCE]
        usable = np.isfinite(block).all(axis=1) & block.any(axis=1)
        wrong += (start + np.flatnonzero(~usable)).tolist()
    if wrong:
        raise IntegrityError(
            f"{len(wrong):,} of {len(vectors):,} vectors have no direction",
            where=f"{folder / 'vectors.npy'}, row {wrong[0]}", expected="finite numbers, not all of them zero",
            found=f"{vectors[wrong[0]][:3].tolist()}... of {ids[wrong[0]]!r}",
            hint="Embed these again, or take them out of both files.",
        )  # fmt: skip
