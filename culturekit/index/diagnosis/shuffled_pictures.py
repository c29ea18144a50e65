"""Pictures cut into tiles and shuffled: the same colours and textures, and nothing that they could show."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.defaults import COPIES_PER_SHARD
from culturekit.errors import UsageError
from culturekit.index.embedding.pictures import load_picture
from culturekit.records.schemas import IMAGES
from culturekit.records.work import Outcome, Work
from culturekit.stages.roles import SHUFFLED
from culturekit.stages.stage_command import Seed
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import digest, digest_bytes
from culturekit.storage.picture_files import encoded
from culturekit.storage.seals import seal_pictures
from culturekit.storage.shard_runs import run_shards
from culturekit.storage.tables import merge_parts, read_table, save_parquet, table_outcome

__all__ = ["ShuffleOptions", "shuffle_pictures", "shuffled"]


@dataclass(frozen=True, slots=True)
class ShuffleOptions:
    """How images are shuffled."""

    tiles: Annotated[int, Field(ge=2, le=64, description="Tiles along each side of a picture.")] = 8
    repeats: Annotated[int, Field(ge=0, description="Repeats of each prompt that are taken; 0 takes all.")] = 5
    seed: Seed = 0


@dataclass(frozen=True, slots=True)
class ShuffleShard:
    """A run of images to shuffle, as a work item: rows `start:stop` of those that are taken."""

    images: Path
    options: ShuffleOptions
    start: int
    stop: int
    out: Path
    part: Path


def shuffle_pictures(work: Work, images_path: Path, options: ShuffleOptions) -> Outcome:
    """Write shuffled copies of the images of a table, and the table that lists them."""
    taken = taken_images(images_path, options)
    if taken.is_empty():
        raise UsageError("there is no image to shuffle", where=str(images_path), expected="rows with status ok")
    shards = [
        ShuffleShard(
            images_path, options, start, min(start + COPIES_PER_SHARD, taken.height), work.out,
            work.scratch / f"shuffled-{start:09d}.parquet",
        )
        for start in range(0, taken.height, COPIES_PER_SHARD)
    ]  # fmt: skip
    run_shards(work, shards, shuffle_shard, size=lambda shard: shard.stop - shard.start, unit="images")
    images = merge_parts([shard.part for shard in shards], columns())
    return table_outcome(work, IMAGES, images, notes={"tiles": options.tiles})


def taken_images(images_path: Path, options: ShuffleOptions) -> pl.DataFrame:
    """Choose the images: the first repeats of each prompt."""
    images = read_table(images_path, IMAGES).filter(pl.col("status") == "ok").sort("image_id")
    if options.repeats:
        early = pl.col("repeat").fill_null(0) < options.repeats
        images = images.filter(early)
    return images


def shuffle_shard(shard: ShuffleShard) -> int:
    """Shuffle a run of images."""
    images = taken_images(shard.images, shard.options).slice(shard.start, shard.stop - shard.start)
    rows = [shuffled_row(row, shard) for row in images.iter_rows(named=True)]
    save_parquet(pl.DataFrame(rows, schema=columns()), shard.part)
    seal_pictures(shard.part, shard.out, rows)
    return shard.stop - shard.start


def shuffled_row(row: dict[str, Any], shard: ShuffleShard) -> dict[str, Any]:
    """Save the shuffled copy of an image and describe it: what it was asked for stays, what it shows is gone."""
    rng = np.random.default_rng(int(digest([shard.options.seed, row["sha256"]])[:16], 16))
    pixels = shuffled(load_picture(shard.images.parent, row["path"], sha256=row["sha256"]), shard.options.tiles, rng)
    content = encoded(pixels)
    image_id = digest([SHUFFLED, row["image_id"]])[:16]
    relative = f"files/{image_id[:2]}/{image_id}.png"
    (shard.out / relative).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(shard.out / relative, content)
    kept = {name: row.get(name) for name in ("prompt_id", "repeat", "slot", "prompt_sent", "concept", "country")}
    return kept | {
        "image_id": image_id,
        "path": relative,
        "model": SHUFFLED,
        "model_version": f"{row['model']}, {shard.options.tiles} x {shard.options.tiles} tiles",
        "rewriter": "off",
        "provider_params": "{}",
        "sha256": digest_bytes(content),
        "width": pixels.shape[1],
        "height": pixels.shape[0],
        "status": "ok",
    }


def shuffled(picture: NDArray[np.uint8], tiles: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Put tiles x tiles parts of a picture, all of one size, into another order; what is left over is cut off."""
    height, width = (max(side // tiles, 1) for side in picture.shape[:2])
    down, across = picture.shape[0] // height, picture.shape[1] // width
    down, across = min(down, tiles), min(across, tiles)
    cut = picture[: down * height, : across * width].reshape(down, height, across, width, 3).swapaxes(1, 2)
    mixed = cut.reshape(down * across, height, width, 3)[rng.permutation(down * across)]
    whole = mixed.reshape(down, across, height, width, 3).swapaxes(1, 2)
    return np.ascontiguousarray(whole.reshape(down * height, across * width, 3))


def columns() -> dict[str, pl.DataType]:
    """Give the columns of the table; nobody knows what a shuffled picture truly shows."""
    asked = {name: IMAGES.optional[name].dtype for name in ("concept", "country")}
    return {**IMAGES.schema, **asked}
