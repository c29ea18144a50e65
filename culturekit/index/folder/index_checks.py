"""What an index must hold to before anything is searched in it; whatever does not is refused with the reason."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from culturekit.errors import IntegrityError
from culturekit.index.encoder import Vectors
from culturekit.storage.digests import digest, known_digest
from culturekit.storage.manifest import MANIFEST, Manifest, read_manifest

__all__ = ["check_files", "check_rows", "check_vectors", "differing", "refused"]

ROWS_AT_ONCE = 16_384
UNIT_WITHIN = 1e-3
"""How far the norm of a vector may be from 1; half-precision encoders stay well within."""


def refused(problem: str, where: Path, *, expected: str = "", found: str = "") -> IntegrityError:
    """Say why an index is not opened."""
    return IntegrityError(problem, where=str(where), expected=expected, found=found, hint="Build the index again.")


def check_files(folder: Path, *, verified: bool = False) -> Manifest:
    """Read the manifest, and hold every file that it lists to its size and, unless that was done, its SHA-256."""
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


def check_rows(ids: pl.DataFrame, vectors: Vectors, where: Path) -> None:
    """Make sure that ids and vectors belong together."""
    if (
        not {"channel", "source"} <= set(ids.columns)
        or ids.select("channel", "source").null_count().sum_horizontal()[0]
    ):
        raise refused("the rows of the index do not say their channel and source", where)
    if vectors.ndim != 2 or vectors.dtype != np.float32 or len(vectors) != ids.height:
        raise refused(
            "the vectors and their ids do not belong together",
            where,
            expected=f"float32 ({ids.height}, dim)",
            found=f"{vectors.dtype} {vectors.shape}",
        )
    if ids["row"].to_list() != list(range(ids.height)):
        raise refused("the rows of ids.parquet are not numbered from 0 on", where)


def check_vectors(vectors: Vectors, folder: Path, notes: Mapping[str, Any]) -> None:
    """Make sure that vectors have the encoder's length and are finite and of unit norm."""
    dim = notes.get("identity", {}).get("dim")
    if dim != vectors.shape[1]:
        raise refused("the vectors are not the encoder's", folder, expected=f"{dim} dimensions",
                      found=str(vectors.shape[1]))  # fmt: skip
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        part = np.asarray(vectors[start : start + ROWS_AT_ONCE])
        norms = np.sqrt(np.einsum("nd,nd->n", part, part))
        wrong = ~(np.abs(norms - 1) <= UNIT_WITHIN)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise refused("a vector is not of unit norm", folder, expected=f"norm 1 within {UNIT_WITHIN}",
                          found=f"{norms[row]} in row {start + row}")  # fmt: skip


def differing(stated: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Name the fields in which two identities differ."""
    return [name for name in {**stated, **given} if stated.get(name) != given.get(name)]
