"""Folders of vectors as inputs of a score: their files, what made them, and where images belong."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from culturekit.errors import IntegrityError, UsageError
from culturekit.index.encoder import Vectors
from culturekit.index.vector_folder import load_vectors
from culturekit.metrics.scoring.score_c3 import LabelledVectors
from culturekit.pipeline.public_files import prompts_table
from culturekit.records.schemas import IMAGES, PROMPTS
from culturekit.storage.manifest import read_manifest
from culturekit.storage.tables import read_table

__all__ = ["identity_behind", "images_with_prompts", "labelled", "one_identity", "vector_inputs"]

UNKNOWN = {"name": "unknown"}
"""Of vectors whose folder has no manifest with an encoder."""


def vector_inputs(folders: Mapping[str, Path | None]) -> dict[str, Path]:
    """Name the files of each folder by its role; a folder that is not given has none."""
    return {
        f"{role}-{part}": path
        for role, folder in folders.items()
        if folder is not None
        for part, path in {"vectors": vectors_in(folder, role), "ids": folder / "ids.parquet"}.items()
    }


def vectors_in(folder: Path, role: str) -> Path:
    """Name the file of vectors; class probabilities may stand in a folder of features, beside those."""
    beside = folder / "probabilities.npy"
    return beside if role == "probs" and beside.is_file() else folder / "vectors.npy"


def labelled(folder: Path, *, role: str = "") -> LabelledVectors:
    """Open a folder of vectors, or the class probabilities in it."""
    vectors, ids = load_vectors(folder)
    path = vectors_in(folder, role)
    return LabelledVectors(vectors if path.name == "vectors.npy" else probabilities_in(path, len(ids)), ids)


def probabilities_in(path: Path, rows: int) -> Vectors:
    """Open class probabilities."""
    probabilities: Vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    if probabilities.ndim != 2 or len(probabilities) != rows:
        raise IntegrityError("the probabilities and their ids do not belong together", where=str(path),
                             expected=f"({rows}, classes)", found=str(probabilities.shape))  # fmt: skip
    return probabilities


def identity_behind(folder: Path) -> dict[str, Any]:
    """Say what made the vectors of a folder: everything that its manifest says of the encoder."""
    manifest = read_manifest(folder)
    identity = {} if manifest is None else manifest.notes.get("identity", {})
    return dict(identity) or dict(UNKNOWN)


def one_identity(first: Path, second: Path) -> dict[str, Any]:
    """Give the encoder of two folders; two that are known must be one."""
    identity, other = identity_behind(first), identity_behind(second)
    if UNKNOWN not in (identity, other) and identity != other:
        differ = [key for key in {**identity, **other} if identity.get(key) != other.get(key)]
        raise UsageError(
            "the vectors were made by different encoders",
            where=f"{first}, {second}",
            expected=", ".join(f"{key} {identity.get(key)}" for key in differ),
            found=", ".join(f"{key} {other.get(key)}" for key in differ),
            hint="Encode both with one.",
        )
    return other if identity == UNKNOWN else identity


def images_with_prompts(images: Path, prompts: Path | None, scratch: Path) -> pl.DataFrame:
    """Read a table of images; concept and country of their prompts fill in what it does not say."""
    table = read_table(images, IMAGES)
    if prompts is None:
        return table
    said = read_table(prompts_table(prompts, scratch), PROMPTS).select(
        "prompt_id", asked_concept="concept", asked_country="country"
    )
    joined = table.join(said, on="prompt_id", how="left", maintain_order="left")
    for name in ("concept", "country"):
        known = [pl.col(name)] if name in table.columns else []
        joined = joined.with_columns(pl.coalesce(*known, f"asked_{name}").alias(name))
    return joined.drop("asked_concept", "asked_country")
