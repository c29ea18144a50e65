"""Pictures of one colour with captions, terms and licences, and the folders that are made of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from culturekit.core.digests import digest_file
from culturekit.core.pictures.picture_files import encoded
from culturekit.core.run import StageRun, run_stage
from culturekit.core.schemas import IMAGES, VALUES
from culturekit.core.stage import Stage
from culturekit.core.tables import write_table
from tests.conftest import HereEngine

Terms = dict[str, tuple[float | None, float | None, float | None]]  # Text, image and object of each item


def done(stage: Stage, out: Path) -> StageRun:
    return run_stage(stage, out, engine=HereEngine())


def values_of(folder: Path, terms: Terms) -> Path:
    """Write the values that `score c3` writes."""
    place = {"model": "captions", "benchmark": "c3", "params": "{}"}
    rows = [
        {"metric": f"c3_{term}", **place, "item": item, "value": value}
        for item, values in terms.items()
        for term, value in zip(("text", "image", "object"), values, strict=True)
    ]
    return write_table(folder, VALUES, pl.DataFrame(rows, schema=VALUES.schema))


def images_of(folder: Path, items: list[str], *, side: int = 16) -> Path:
    """Write a picture of a colour of its own for each item, and their table."""
    rows: list[dict[str, Any]] = []
    for number, item in enumerate(items):
        pixels = np.full((side, side, 3), (number * 40 % 256, 90, 200 - number * 30 % 200), np.uint8)
        path = folder / f"picture-{number}.png"
        path.write_bytes(encoded(pixels, "png"))
        rows.append({
            "image_id": item, "path": path.name, "model": "photographs", "rewriter": "off", "provider_params": "{}",
            "sha256": digest_file(path), "width": side, "height": side, "status": "ok",
        })  # fmt: skip
    return write_table(folder, IMAGES, pl.DataFrame(rows, schema=IMAGES.schema))


def texts_of(folder: Path, items: list[str]) -> Path:
    """Write a caption for each item."""
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps({"id": item, "text": f"a colour called {item}"}) + "\n" for item in items))
    return path


def rights_of(folder: Path, items: list[str], *, licence: str = "CC0") -> Path:
    """Write a licence for each item."""
    path = folder / "rights.csv"
    lines = [f"{item},{licence},https://example.org/{number},somebody" for number, item in enumerate(items)]
    path.write_text("\n".join(["image_id,licence,source,author", *lines]) + "\n")
    return path
