"""The vectors of images: made now, or taken from a folder that `index embed` wrote."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from culturekit.index.embedding import embed
from culturekit.index.embedding_encoders import encoder_of
from culturekit.index.encoder import Vectors
from culturekit.index.index_folder import OpenIndex, check_identity
from culturekit.index.mapping_images import dropped
from culturekit.records.work import Work

__all__ = ["Seen", "embedded", "encoder_for"]


@dataclass(frozen=True, slots=True)
class Seen:
    """Images that have a vector, their vectors in the same order, and DROPS of those that could not be read."""

    images: pl.DataFrame
    vectors: Vectors
    drops: pl.DataFrame


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
    return Seen(made.kept, made.vectors, dropped(lost, reason=pl.col("why"), detail=pl.col("what")))
