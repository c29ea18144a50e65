"""Tables of images with files beside them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from culturekit.core.digests import digest_file
from culturekit.core.schemas import IMAGES
from culturekit.core.tables import write_table


def save_picture(path: Path, *, seed: int, size: tuple[int, int] = (16, 16)) -> Path:
    """Write a picture of noise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def image_row(folder: Path, path: str, **more: object) -> dict[str, object]:
    """Describe a file as an images table does."""
    row = {
        "image_id": Path(path).stem, "path": path, "model": "photos", "rewriter": "unknown", "provider_params": "{}",
        "sha256": digest_file(folder / path), "width": 16, "height": 16, "status": "ok",
    }  # fmt: skip
    return {**row, **more}


def images_table(folder: Path, rows: list[Mapping[str, object]]) -> Path:
    """Write the table, with the optional columns that a row names."""
    named = {name for row in rows for name in row}
    optional = {name: column.dtype for name, column in IMAGES.optional.items() if name in named}
    return write_table(folder, IMAGES, pl.DataFrame(rows, schema={**IMAGES.schema, **optional}))


def pictures_of_one_colour(folder: Path, count: int) -> Path:
    """Write a table of pictures, each of another colour."""
    folder.mkdir()
    rows: list[Mapping[str, object]] = []
    for number in range(count):
        path = folder / f"{number:06d}.png"
        Image.new("RGB", (64, 64), f"#{number * 7:06x}").save(path)
        rows.append(image_row(folder, path.name, rewriter="off", width=64, height=64))
    return images_table(folder, rows)
