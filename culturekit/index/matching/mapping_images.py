"""The images that are to be mapped, with what their prompts asked for; those without a picture are drops."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from culturekit.errors import IntegrityError, UsageError
from culturekit.index.embedding.embedding import embed
from culturekit.index.embedding.embedding_encoders import encoder_of
from culturekit.index.embedding.vector_folder import load_vectors, save_vectors
from culturekit.index.encoder import Vectors
from culturekit.index.folder.index_checks import differing
from culturekit.index.folder.index_folder import OpenIndex, check_identity
from culturekit.records.schemas import DROPS, IMAGES, PROMPTS
from culturekit.records.work import Work
from culturekit.storage.digests import digest_file
from culturekit.storage.manifest import Manifest, read_manifest
from culturekit.storage.tables import read_table

__all__ = [
    "MAP",
    "Seen",
    "dropped",
    "embedded",
    "encoder_for",
    "images_to_map",
    "kept_in",
    "vectors_from",
    "with_prompts",
    "with_truth",
]

MAP = "map"
"""What drops of this stage name it."""


def images_to_map(images_path: Path, prompts_path: Path | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """List the images that have a picture, by id, and the drops of those that have none."""
    images = with_prompts(read_table(images_path, IMAGES).sort("image_id"), prompts_path)
    usable, without = images.filter(pl.col("status") == "ok"), images.filter(pl.col("status") != "ok")
    detail = pl.concat_str(pl.col("status"), pl.col("reason"), separator=": ", ignore_nulls=True)
    drops = dropped(without, reason=pl.lit("image without a picture"), detail=detail)
    if usable.is_empty():
        raise UsageError("there is no image to map", where=str(images_path), expected="rows with status ok")
    return usable, drops


def with_prompts(images: pl.DataFrame, prompts_path: Path | None) -> pl.DataFrame:
    """Fill in the concept and country of the prompt where the images table does not say them."""
    absent = [name for name in ("concept", "country") if name not in images.columns]
    images = images.with_columns([pl.lit(None, pl.String).alias(name) for name in absent])
    if prompts_path is None:
        return images
    prompts = read_table(prompts_path, PROMPTS).select("prompt_id", "concept", "country", "artifact_id")
    joined = images.join(prompts, on="prompt_id", how="left", maintain_order="left", suffix="_asked")
    return joined.with_columns(
        concept=pl.coalesce("concept", "concept_asked"), country=pl.coalesce("country", "country_asked")
    ).rename({"artifact_id": "asked_artifact_id"})


def with_truth(images_path: Path, prompts_path: Path | None) -> pl.DataFrame:
    """List the pictures of a table that say which artifact they show: by their truth, or by what was asked for."""
    images = with_prompts(read_table(images_path, IMAGES).sort("image_id"), prompts_path)
    known = [name for name in ("truth_artifact_id", "asked_artifact_id") if name in images.columns]
    if not known:
        raise UsageError(
            "the table does not say which artifact an image shows",
            where=str(images_path),
            expected="a column truth_artifact_id, or --prompts with the prompts that the images were made from",
        )
    shown = images.filter(pl.col("status") == "ok").with_columns(artifact_id=pl.coalesce(known))
    return shown.filter(pl.col("artifact_id").is_not_null())


def dropped(images: pl.DataFrame, *, reason: pl.Expr, detail: pl.Expr) -> pl.DataFrame:
    """Write images as rows of DROPS."""
    return images.select(
        key="image_id", concept="concept", stage=pl.lit(MAP), reason=reason, detail=detail.cast(pl.String)
    ).select([pl.col(name).cast(dtype) for name, dtype in DROPS.schema.items()])


@dataclass(frozen=True, slots=True)
class Seen:
    """Images that have a vector: `row` says which of `vectors` is an image's; and DROPS of those that have none."""

    images: pl.DataFrame
    vectors: Vectors
    drops: pl.DataFrame
    path: Path | None = None


def encoder_for(index: OpenIndex, spec: str | None) -> str:
    """Give the SPEC of the encoder that made an index, or another that is the same encoder."""
    chosen = spec or index.encoder
    check_identity(index, encoder_of(chosen))
    return chosen


def embedded(work: Work, images: pl.DataFrame, root: Path, encoder: str, *, name: str) -> Seen:
    """Embed images; `name` keeps their shards apart from those of others."""
    scratch = work.scratch / name
    scratch.mkdir(exist_ok=True)
    made = embed(images, root, encoder, scratch, engine=work.engine, progress=work.progress)
    unread = made.unreadable.select("image_id", why="reason", what="detail")
    lost = images.join(unread, on="image_id", how="inner", maintain_order="left")
    drops = dropped(lost, reason=pl.col("why"), detail=pl.col("what"))
    return Seen(made.kept.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64)), made.vectors, drops)


def kept_in(out: Path, seen: Seen) -> Seen:
    """Keep the vectors in the stage's folder."""
    save_vectors(out, seen.vectors, seen.images["image_id"].to_list())
    return Seen(seen.images, seen.vectors, seen.drops, out / "vectors.npy")


def vectors_from(folder: Path, images: pl.DataFrame, images_path: Path, index: OpenIndex) -> Seen:
    """Take the vectors of images from a folder; what could not be embedded then is a drop now.

    Raises:
        IntegrityError: it was changed, made by another encoder than the index, or of another images table.
    """
    manifest = checked_folder(folder)
    stated, given = dict(index.notes.get("identity", {})), dict(manifest.notes.get("identity", {}))
    if stated != given:
        names = ", ".join(differing(stated, given))
        raise refused(f"of another encoder than the index ({names} differ)", folder, manifest.notes["encoder"])
    table = manifest.inputs.get("images")
    if table is None or table.sha256 != digest_file(images_path):
        raise refused("not the vectors of these images", folder, "nothing of them" if table is None else table.name)
    vectors, ids = load_vectors(folder)
    rows = pl.DataFrame({"image_id": ids, "row": np.arange(len(ids))}, schema={"image_id": pl.String, "row": pl.Int64})
    why = read_table(folder / "drops.parquet", DROPS).select(image_id="key", why="reason", what="detail")
    joined = images.join(rows, on="image_id", how="left", maintain_order="left")
    lost = joined.filter(pl.col("row").is_null()).join(why, on="image_id", how="left", maintain_order="left")
    if lost["why"].has_nulls():
        raise refused("without a vector of some images, and without a reason", folder, lost["image_id"][0])
    drops = dropped(lost, reason=pl.col("why"), detail=pl.col("what"))
    return Seen(joined.filter(pl.col("row").is_not_null()), vectors, drops, folder / "vectors.npy")


def checked_folder(folder: Path) -> Manifest:
    """Read the manifest of a folder of vectors, whose files are still what it lists."""
    manifest = read_manifest(folder)
    if manifest is None or manifest.stage != "embed":
        raise UsageError("not a folder of vectors", where=str(folder), hint="Make one with: culturekit index embed")
    for name, record in manifest.outputs.items():
        if not (folder / name).is_file() or digest_file(folder / name) != record.sha256:
            raise refused("not what was made", folder, name)
    return manifest


def refused(problem: str, folder: Path, found: str) -> IntegrityError:
    """Say why vectors are not taken."""
    return IntegrityError(
        f"the folder of vectors is {problem}",
        where=str(folder),
        found=found,
        hint="Embed the images again with: culturekit index embed",
    )
