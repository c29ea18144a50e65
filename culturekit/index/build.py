"""Reference pictures to an index: their vectors, sorted by artifact, and the encoder that made them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from culturekit.errors import UsageError
from culturekit.index.artifacts import artifacts_of
from culturekit.index.encoder import ImageEncoder, Vectors
from culturekit.index.encoders import ENCODERS
from culturekit.index.pictures import load_picture
from culturekit.index.vector_folder import save_vectors
from culturekit.records.schemas import ARTIFACTS, IMAGES, PROMPTS
from culturekit.records.work import Engine, Outcome, Progress, Work
from culturekit.storage.arrays import save_array
from culturekit.storage.tables import read_table, write_table

__all__ = ["build_index", "embed", "encoder_of"]

PICTURES_PER_SHARD = 200


@dataclass(frozen=True, slots=True)
class EmbeddingShard:
    """A run of pictures to embed, as a work item."""

    encoder: str
    root: Path
    pictures: tuple[tuple[str, str], ...]
    part: Path


@cache
def encoder_of(spec: str) -> ImageEncoder:
    """Make an encoder of pictures once per process."""
    encoder = ENCODERS.make(spec)
    if not isinstance(encoder, ImageEncoder):
        raise UsageError("the encoder reads no pictures", where=spec, expected="an encoder of pictures")
    return encoder


def embed_shard(shard: EmbeddingShard) -> int:
    """Embed a run of pictures and keep the vectors in the shard's part file."""
    pictures = [load_picture(shard.root, relative, sha256=sha256) for relative, sha256 in shard.pictures]
    save_array(shard.part, encoder_of(shard.encoder).encode_images(pictures))
    return len(pictures)


def embed(
    images: pl.DataFrame, root: Path, encoder: str, scratch: Path, *, engine: Engine, progress: Progress
) -> Vectors:
    """Embed the pictures of an images table in its row order; shards of a cut run are not embedded again."""
    listed = list(images.select("path", "sha256").iter_rows())
    shards = [
        EmbeddingShard(
            encoder, root, tuple(listed[start : start + PICTURES_PER_SHARD]), scratch / f"vectors-{start:09d}.npy"
        )
        for start in range(0, len(listed), PICTURES_PER_SHARD)
    ]
    todo = [shard for shard in shards if not shard.part.exists()]
    progress.begin(len(listed), "pictures")
    progress.advance(len(listed) - sum(len(shard.pictures) for shard in todo))
    for done in engine.map(embed_shard, todo):
        progress.advance(done)
    vectors: Vectors = np.concatenate([np.load(shard.part, allow_pickle=False) for shard in shards])
    return vectors


def build_index(
    work: Work, cspace_path: Path, references_path: Path, encoder: str, *, prompts_path: Path | None = None
) -> Outcome:
    """Write an index over the reference pictures of a cultural space."""
    artifacts = artifacts_of(cspace_path)
    references = reference_rows(references_path, prompts_path)
    known = references.join(artifacts.select("artifact_id"), on="artifact_id", how="semi")
    known = known.sort("artifact_id", "image_id")
    missing = artifacts.join(known, on="artifact_id", how="anti")
    if known.is_empty():
        raise UsageError("no reference picture shows an artifact of the cultural space", where=str(references_path))
    vectors = embed(known, references_path.parent, encoder, work.scratch, engine=work.engine, progress=work.progress)
    save_vectors(work.out, vectors, known["artifact_id"].to_list())
    write_table(work.out, ARTIFACTS, artifacts)
    identity = encoder_of(encoder).identity
    drops: Mapping[str, int] = {
        "reference of an unknown artifact": references.height - known.height,
        "artifact without a reference": missing.height,
    }
    counts = {"ids": known.height, "artifacts": artifacts.height, "indexed": artifacts.height - missing.height}
    notes = {"encoder": encoder, "identity": identity.as_options(), "caveat": encoder_of(encoder).caveat}
    return Outcome(counts, {reason: count for reason, count in drops.items() if count}, notes)


def reference_rows(references_path: Path, prompts_path: Path | None) -> pl.DataFrame:
    """List the reference pictures with the artifact each shows: the truth, or what its prompt asked for."""
    images = read_table(references_path, IMAGES).filter(pl.col("status") == "ok")
    if "truth_artifact_id" in images.columns:
        return images.with_columns(artifact_id="truth_artifact_id").filter(pl.col("artifact_id").is_not_null())
    if prompts_path is None:
        raise UsageError(
            "the table does not say which artifact a reference picture shows",
            where=str(references_path),
            expected="a column truth_artifact_id, or --prompts with the prompts the pictures were made from",
        )
    asked = read_table(prompts_path, PROMPTS).select("prompt_id", "artifact_id")
    return images.join(asked, on="prompt_id", how="inner").filter(pl.col("artifact_id").is_not_null())
