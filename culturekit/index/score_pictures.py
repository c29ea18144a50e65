"""A quality scorer over a table of images, in shards."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars as pl

from culturekit.index.pictures import load_picture
from culturekit.index.quality import QualityScorer
from culturekit.index.scorers import SCORERS
from culturekit.records.schemas import IMAGES, QUALITY
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import merge_parts, read_table, save_parquet, write_table

__all__ = ["score_pictures"]

IMAGES_PER_SHARD = 200


@dataclass(frozen=True, slots=True)
class QualityShard:
    """A run of images to score, as a work item: id, path and hash of each."""

    scorer: str
    root: Path
    images: tuple[tuple[str, str, str], ...]
    part: Path


@cache
def scorer_of(spec: str) -> QualityScorer:
    """Make a scorer once per process."""
    return SCORERS.make(spec)


def score_pictures(work: Work, images_path: Path, scorer: str) -> Outcome:
    """Write the quality of every image that has a picture."""
    images = read_table(images_path, IMAGES).filter(pl.col("status") == "ok").sort("image_id")
    listed = list(images.select("image_id", "path", "sha256").iter_rows())
    shards = [
        QualityShard(
            scorer,
            images_path.parent,
            tuple(listed[start : start + IMAGES_PER_SHARD]),
            work.scratch / f"quality-{start:09d}.parquet",
        )
        for start in range(0, len(listed), IMAGES_PER_SHARD)
    ]
    work.progress.begin(len(listed), "images")
    for done in work.engine.map(score_shard, shards):
        work.progress.advance(done)
    quality = merge_parts([shard.part for shard in shards], QUALITY.schema)
    write_table(work.out, QUALITY, quality)
    return Outcome({"quality": quality.height}, notes={"scorer": scorer, "caveat": scorer_of(scorer).caveat})


def score_shard(shard: QualityShard) -> int:
    """Score a run of images, unless an earlier run did."""
    if not shard.part.exists():
        scorer = scorer_of(shard.scorer)
        pictures = [load_picture(shard.root, path, sha256=sha256) for _, path, sha256 in shard.images]
        ids = [image_id for image_id, _, _ in shard.images]
        rows = {"image_id": ids, "scorer": [scorer.name] * len(ids), "value": scorer.score(pictures)}
        save_parquet(pl.DataFrame(rows, schema=QUALITY.schema), shard.part)
    return len(shard.images)
