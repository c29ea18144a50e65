"""The parts of an index: what was built, what was appended since, and what no longer counts."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.records.schemas import SLICES, TOMBSTONES, VECTOR_IDS
from culturekit.storage.arrays import save_rows
from culturekit.storage.atomic import copy_file
from culturekit.storage.tables import read_table, save_parquet

__all__ = [
    "ids_name",
    "in_index_order",
    "part_names",
    "read_graves",
    "rows_of_parts",
    "save_part_of_index",
    "slices_of",
    "take_over",
]

ROW_ORDER = ("channel", "concept", "country", "artifact_id", "source")
"""What rows stand by; concept and country are the artifact's first."""


def in_index_order(rows: pl.DataFrame, artifacts: pl.DataFrame) -> pl.DataFrame:
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
    return rows.join(under, on="artifact_id", how="left", maintain_order="left").sort(ROW_ORDER, maintain_order=True)


def slices_of(ordered: pl.DataFrame) -> pl.DataFrame:
    """Give SLICES of rows that stand in order."""
    numbered = ordered.with_row_index("place")
    runs = numbered.group_by("channel", "concept", "country", maintain_order=True).agg(
        start=pl.col("place").min(), stop=pl.col("place").max() + 1
    )
    return runs.select([pl.col(name).cast(dtype) for name, dtype in SLICES.schema.items()])


ROWS_AT_ONCE = 16_384
OWN_OF_EACH = frozenset({"artifacts.parquet", "drops.parquet", "tombstones.parquet", "manifest.json", "run.json"})
"""Files that each state of an index writes itself; vectors, their ids and slices pass on as they are."""


def part_names(notes: Mapping[str, Any]) -> list[str]:
    """List the arrays of an index, the one it was built with first."""
    return ["vectors.npy", *notes.get("shards", [])]


def ids_name(vectors_name: str) -> str:
    """Name the table that says what the vectors of a part belong to."""
    return vectors_name.replace("vectors", "ids").replace(".npy", ".parquet")


def read_graves(folder: Path) -> pl.DataFrame:
    """Read which rows of which parts no longer count; there may be none."""
    path = folder / "tombstones.parquet"
    return read_table(path, TOMBSTONES) if path.exists() else pl.DataFrame(schema=TOMBSTONES.schema)


def rows_of_parts(parts: Sequence[Vectors], rows: NDArray[np.int64]) -> Vectors:
    """Copy rows together, numbered through all parts; nothing else is held in memory."""
    starts = np.cumsum([0, *(len(part) for part in parts)])
    together = np.empty((len(rows), parts[0].shape[1]), np.float32)
    for number, part in enumerate(parts):
        own = np.flatnonzero((rows >= starts[number]) & (rows < starts[number + 1]))
        for start in range(0, len(own), ROWS_AT_ONCE):
            some = own[start : start + ROWS_AT_ONCE]
            together[some] = part[rows[some] - starts[number]]
    return together


def save_part_of_index(out: Path, number: int, rows: pl.DataFrame, vectors: Vectors, artifacts: pl.DataFrame) -> str:
    """Write one more part: rows (channel, artifact_id, source) and their vectors, in the order of an index."""
    ordered = in_index_order(rows.with_row_index("given"), artifacts)
    given = ordered["given"].to_numpy()
    name = f"vectors-{number:04d}.npy"
    parts = (vectors[given[start : start + ROWS_AT_ONCE]] for start in range(0, len(given), ROWS_AT_ONCE))
    save_rows(out / name, parts, shape=(len(given), vectors.shape[1]), dtype=np.float32)
    ids = ordered.with_row_index("row").select(pl.col("row").cast(pl.UInt32), "channel", "source", id="artifact_id")
    save_parquet(ids.select(*VECTOR_IDS.columns, "channel", "source"), out / ids_name(name))
    return name


def take_over(folder: Path, out: Path) -> None:
    """Give a new folder the vectors of another: as links where the disk can, as copies elsewhere."""
    for path in sorted(folder.iterdir()):
        if path.name in OWN_OF_EACH or not path.is_file() or path.suffix not in {".npy", ".parquet"}:
            continue
        to = out / path.name
        to.unlink(missing_ok=True)
        try:
            os.link(path, to)
        except OSError:
            copy_file(path, to)
