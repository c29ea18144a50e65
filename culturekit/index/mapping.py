"""Images to their nearest artifacts, with the margins that say how clear each case is."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.errors import IntegrityError, UsageError
from culturekit.index.embedding import embed
from culturekit.index.embedding_encoders import encoder_of
from culturekit.index.encoder import Vectors
from culturekit.index.search import ArtifactVectors, nearest
from culturekit.index.vector_folder import load_vectors, save_vectors
from culturekit.records.choices import Aggregate
from culturekit.records.schemas import ARTIFACTS, IMAGES, MATCHES
from culturekit.records.work import Outcome, Work
from culturekit.storage.manifest import read_manifest
from culturekit.storage.tables import merge_parts, read_table, save_parquet, write_table

__all__ = ["MappingOptions", "map_images"]

IMAGES_PER_SHARD = 500


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """How images are mapped: how many artifacts to keep per image, and how references become one score."""

    k: Annotated[int, Field(ge=1, le=1000)] = 5
    aggregate: Aggregate = "max"


@dataclass(frozen=True, slots=True)
class MatchShard:
    """A run of images to match, as a work item: rows `start:stop` of the images and of their vectors."""

    index: Path
    images: Path
    vectors: Path
    start: int
    stop: int
    options: MappingOptions
    part: Path


@dataclass(frozen=True, slots=True)
class LoadedIndex:
    """An index in memory, artifacts in the order of their ids."""

    artifacts: pl.DataFrame
    vectors: ArtifactVectors
    countries: NDArray[np.bool_]
    codes: tuple[str, ...]


def map_images(work: Work, index: Path, images_path: Path, options: MappingOptions) -> Outcome:
    """Embed the images of a table and write the nearest artifacts of each."""
    images = usable(images_path)
    notes = index_notes(index)
    encoder = str(notes["encoder"])
    if encoder_of(encoder).identity.as_options() != notes["identity"]:
        raise IntegrityError(
            "the encoder is not the one that built the index",
            where=str(index),
            expected=str(notes["identity"]),
            found=str(encoder_of(encoder).identity.as_options()),
            hint="Build the index again.",
        )
    answer = embed(images, images_path.parent, encoder, work.scratch, engine=work.engine, progress=work.progress)
    vectors, images = answer.vectors, answer.kept
    save_vectors(work.out, vectors, images["image_id"].to_list())
    shards = [
        MatchShard(index, images_path, work.out / "vectors.npy", start, min(start + IMAGES_PER_SHARD, images.height),
                   options, work.scratch / f"matches-{start:09d}.parquet")
        for start in range(0, images.height, IMAGES_PER_SHARD)
    ]  # fmt: skip
    for _ in work.engine.map(match_shard, [shard for shard in shards if not shard.part.exists()]):
        pass
    matches = merge_parts([shard.part for shard in shards], MATCHES.schema)
    write_table(work.out, MATCHES, matches)
    skipped = read_table(images_path, IMAGES).height - images.height
    counts = {"matches": matches.height, "ids": images.height}
    drops = {"image without a picture": skipped} if skipped else {}
    return Outcome(counts, drops, {**notes, "similarity": similarity_of(matches)})


def similarity_of(matches: pl.DataFrame) -> dict[str, float]:
    """Say how near the nearest artifacts are: far from everything is a sign of images without culture."""
    nearest = matches.filter(pl.col("rank") == 1)["score"].cast(pl.Float64)
    shares = {"lowest 5 %": 0.05, "median": 0.5, "highest 5 %": 0.95}
    return {name: round(float(nearest.quantile(share, "linear") or 0.0), 4) for name, share in shares.items()}


def usable(images_path: Path) -> pl.DataFrame:
    """List the images that have a picture."""
    images = read_table(images_path, IMAGES).filter(pl.col("status") == "ok").sort("image_id")
    if images.is_empty():
        raise UsageError("there is no image to map", where=str(images_path), expected="rows with status ok")
    return images


def index_notes(index: Path) -> Mapping[str, Any]:
    """Read what an index says of its encoder."""
    manifest = read_manifest(index)
    if manifest is None or manifest.stage != "index":
        raise IntegrityError("not an index", where=str(index), hint="Make one with: culturekit index build")
    return manifest.notes


@cache
def load_index(index: Path) -> LoadedIndex:
    """Open an index once per process; artifacts without a reference are not in it."""
    stored, unsorted = load_vectors(index)
    order = np.argsort(np.array(unsorted), kind="stable")
    vectors, ids = stored[order], [unsorted[row] for row in order.tolist()]
    table = read_table(index / "artifacts.parquet", ARTIFACTS)
    indexed = sorted(set(ids))
    starts = np.searchsorted(np.array(ids), np.array(indexed)).astype(np.int64)
    artifacts = table.filter(pl.col("artifact_id").is_in(indexed)).sort("artifact_id")
    if ids != sorted(ids) or artifacts["artifact_id"].to_list() != indexed:
        raise IntegrityError("the rows of the index are out of order", where=str(index), hint="Build the index again.")
    codes = sorted({code for row in artifacts["countries"].to_list() for code in row})
    countries = np.array([[code in row for code in codes] for row in artifacts["countries"].to_list()])
    return LoadedIndex(artifacts, ArtifactVectors(vectors, np.append(starts, len(ids))), countries, tuple(codes))


def match_shard(shard: MatchShard) -> int:
    """Match a run of images."""
    index = load_index(shard.index)
    images = usable(shard.images).slice(shard.start, shard.stop - shard.start)
    queries: Vectors = np.load(shard.vectors, mmap_mode="r", allow_pickle=False)[shard.start : shard.stop]
    scores = index.vectors.scores(queries, shard.options.aggregate)
    best = nearest(scores, min(shard.options.k, scores.shape[1]))
    rows = [
        row
        for number, image in enumerate(images.iter_rows(named=True))
        for row in match_rows(image, scores[number], best[number], index)
    ]
    save_parquet(pl.DataFrame(rows, schema=MATCHES.schema), shard.part)
    return len(rows)


def match_rows(
    image: Mapping[str, Any], scores: NDArray[np.float32], best: NDArray[np.int64], index: LoadedIndex
) -> list[dict[str, Any]]:
    """Describe the nearest artifacts of one image.

    `margin` is the lead over the best other artifact, `country_margin` over the best artifact of none of
    the match's countries; both are negative where something else is nearer.
    """
    rows = []
    for rank, column in enumerate(best.tolist(), start=1):
        artifact = index.artifacts.row(column, named=True)
        shown = image.get("country")
        place = artifact["countries"].index(shown) if shown in artifact["countries"] else 0
        elsewhere = ~(index.countries & index.countries[column]).any(axis=1)
        others = np.delete(scores, column)
        rows.append(
            {
                "image_id": image["image_id"],
                "model": image["model"],
                "prompt_id": image["prompt_id"],
                "concept": image.get("concept"),
                "repeat": image["repeat"],
                "slot": image["slot"],
                "rank": rank,
                "artifact_id": artifact["artifact_id"],
                "artifact": artifact["artifact"],
                "country": artifact["countries"][place],
                "countries": artifact["countries"],
                "continent": artifact["continents"][place],
                "score": scores[column],
                "margin": scores[column] - others.max(initial=-1.0),
                "country_margin": scores[column] - scores[elsewhere].max(initial=-1.0),
                "abstained": False,
                "method": "nearest",
            }
        )
    return rows
