"""The skin tones of the pictures of an image table, several at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image

from culturekit.defaults import TONES_PER_SHARD
from culturekit.index.embedding.pictures import load_picture
from culturekit.metrics.linguistic.picture_tones import skin_tone
from culturekit.metrics.linguistic.skin_pixels import Detector
from culturekit.records.work import Work

__all__ = ["tones_of_pictures"]


@dataclass(frozen=True, slots=True)
class Shard:
    """Some pictures of one table: their ids, paths and hashes."""

    root: Path
    detector: Detector
    pictures: tuple[tuple[str, str, str], ...]


def tones_of_pictures(
    work: Work, tables: Sequence[tuple[Path, pl.DataFrame]], detector: Detector
) -> dict[str, int | None]:
    """Find the tone of every picture that was made; None where no pixel looks like skin.

    Args:
        work: the engine that maps, and who hears of it.
        tables: each with its path and its rows.
        detector: the rule for skin.
    """
    shards = []
    for path, table in tables:
        made = table.filter(status="ok").select("image_id", "path", "sha256").sort("image_id").rows()
        shards += [
            Shard(path.parent, detector, tuple(made[start : start + TONES_PER_SHARD]))
            for start in range(0, len(made), TONES_PER_SHARD)
        ]
    work.progress.begin(sum(len(shard.pictures) for shard in shards), "pictures")
    tones: dict[str, int | None] = {}
    for shard, found in zip(shards, work.engine.map(tones_of_shard, shards), strict=True):
        tones.update(found)
        work.progress.advance(len(shard.pictures))
    return tones


def tones_of_shard(shard: Shard) -> dict[str, int | None]:
    """Find the tones of some pictures."""
    tones: dict[str, int | None] = {}
    for image, relative, sha256 in shard.pictures:
        found = skin_tone(with_alpha(shard.root, relative, sha256), detector=shard.detector)
        tones[image] = None if found is None else found.index
    return tones


def with_alpha(root: Path, relative: str, sha256: str) -> NDArray[np.uint8]:
    """Load a picture, with its transparency where it has one: transparent pixels are no skin."""
    pixels = load_picture(root, relative, sha256=sha256)
    with Image.open(root / relative) as picture:
        if picture.has_transparency_data:
            return np.asarray(picture.convert("RGBA"))
    return pixels
