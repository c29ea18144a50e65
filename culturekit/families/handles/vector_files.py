"""Folders of vectors as inputs of a score: their files, what made them, and where images belong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import IntegrityError, UsageError
from culturekit.families.handles.public_files import prompts_table
from culturekit.index.embedding.vector_folder import load_vectors
from culturekit.index.encoder import Vectors
from culturekit.records.schemas import IMAGES, PROMPTS
from culturekit.storage.arrays import save_rows
from culturekit.storage.manifest import read_manifest
from culturekit.storage.tables import read_table

__all__ = [
    "LabelledVectors",
    "gathered",
    "identity_behind",
    "images_with_prompts",
    "labelled",
    "one_identity",
    "one_identity_of_all",
    "tables_of_images",
    "vector_inputs",
]

ROWS_AT_ONCE = 16_384

UNKNOWN = {"name": "unknown"}
"""Of vectors whose folder has no manifest with an encoder."""


@dataclass(frozen=True, slots=True)
class LabelledVectors:
    """Vectors, float (n, dim), and what each belongs to: `ITEM`, or `ITEM#k` for its token or object k."""

    vectors: NDArray[np.floating]
    ids: Sequence[str]


def vector_inputs(folders: Mapping[str, Path | None]) -> dict[str, Path]:
    """Name the files of each folder by its role; a folder that is not given has none."""
    return {
        f"{role}-{part}": path
        for role, folder in folders.items()
        if folder is not None
        for part, path in {"vectors": vectors_in(folder, role), "ids": folder_of(folder) / "ids.parquet"}.items()
    }


def folder_of(path: Path) -> Path:
    """Give the folder of vectors, or of a file in it."""
    return path.parent if path.suffix == ".npy" else path


def vectors_in(folder: Path, role: str) -> Path:
    """Name the file of vectors; class probabilities may stand in a folder of features, beside those."""
    if folder.suffix == ".npy":
        return folder
    beside = folder / "probabilities.npy"
    return beside if role.startswith("probs") and beside.is_file() else folder / "vectors.npy"


def labelled(folder: Path, *, role: str = "") -> LabelledVectors:
    """Open a folder of vectors, or the class probabilities in it: the folder, or the file with them."""
    vectors, ids = load_vectors(folder_of(folder))
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
    manifest = read_manifest(folder_of(folder))
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


def one_identity_of_all(folders: Sequence[Path]) -> dict[str, Any]:
    """Give the encoder of all folders; those that are known must be one."""
    known = [folder for folder in folders if identity_behind(folder) != UNKNOWN]
    for first, other in pairwise(known):
        one_identity(first, other)
    return identity_behind(known[0]) if known else dict(UNKNOWN)


def gathered(folders: Sequence[Path], scratch: Path, *, role: str = "") -> LabelledVectors:
    """Open the vectors of several folders as one; more than one are copied into a scratch file, not into memory."""
    parts = [labelled(folder, role=role) for folder in folders]
    if len(parts) == 1:
        return parts[0]
    widths = {part.vectors.shape[1] for part in parts}
    if len(widths) > 1:
        raise UsageError(
            "the vectors are not of one length", where=", ".join(map(str, folders)), expected="one encoder",
            found=" and ".join(map(str, sorted(widths))),
        )  # fmt: skip
    ids = [name for part in parts for name in part.ids]
    blocks = (
        part.vectors[start : start + ROWS_AT_ONCE] for part in parts for start in range(0, len(part.ids), ROWS_AT_ONCE)
    )
    save_rows(scratch, blocks, shape=(len(ids), widths.pop()), dtype=np.float32)
    return LabelledVectors(np.load(scratch, mmap_mode="r", allow_pickle=False), ids)


def tables_of_images(paths: Sequence[Path], prompts: Path | None, scratch: Path) -> pl.DataFrame:
    """Read tables of images as one, with what places an image; an image in two of them is a mistake."""
    names = [*IMAGES.columns, "concept", "country", "group"]
    tables = [images_with_prompts(path, prompts, scratch) for path in paths]
    whole = pl.concat([table.select(name for name in names if name in table.columns) for table in tables],
                      how="diagonal")  # fmt: skip
    twice = whole.filter(pl.col("image_id").is_duplicated())
    if twice.height:
        raise UsageError(
            "two tables have the same image", where=", ".join(map(str, paths)), found=repr(twice["image_id"].sort()[0]),
            hint="Give each table once.",
        )  # fmt: skip
    return whole


def images_with_prompts(images: Path, prompts: Path | None, scratch: Path) -> pl.DataFrame:
    """Read a table of images; concept, country and group of their prompts fill in what it does not say."""
    table = read_table(images, IMAGES)
    if prompts is None:
        return table
    said = read_table(prompts_table(prompts, scratch), PROMPTS).select(
        "prompt_id", asked_concept="concept", asked_country="country", asked_group="group"
    )
    joined = table.join(said, on="prompt_id", how="left", maintain_order="left")
    for name in ("concept", "country", "group"):
        known = [pl.col(name)] if name in table.columns else []
        joined = joined.with_columns(pl.coalesce(*known, f"asked_{name}").alias(name))
    return joined.drop("^asked_.*$")
