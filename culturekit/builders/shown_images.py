"""Images that are put before a model with their prompts: which ones, and why others are not."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.builders.picture_files import read_picture
from culturekit.llm.client import Image
from culturekit.records.schemas import DROPS, IMAGES
from culturekit.storage.picture_reading import NoPicture
from culturekit.storage.tables import read_table, write_table

__all__ = ["ID_LETTERS", "ShownImages", "prompted_images"]

ID_LETTERS = 16
"""Letters of a picture's hash by which a model knows it: file names and ids could tell what it should show."""


def prompted_images(path: Path, per_prompt: int | None) -> pl.DataFrame:
    """List images by their ids; of each model and prompt only the first ones, by repeat and slot, where told so."""
    columns = ("image_id", "model", "prompt_id", "repeat", "slot", "path", "sha256", "status", "reason")
    images = read_table(path, IMAGES).select(columns).sort("image_id")
    if per_prompt is None:
        return images
    order = ("repeat", "slot", "image_id")
    first = images.sort(order, nulls_last=True).group_by("model", "prompt_id", maintain_order=True).head(per_prompt)
    return first.select(columns).sort("image_id")


@dataclass
class ShownImages:
    """Reads the pictures of a table; those that cannot be shown are dropped with a reason."""

    root: Path
    stage: str
    drops: list[tuple[str, str | None, str, str, str | None]] = field(default_factory=list)

    def picture(self, row: dict[str, Any]) -> Image | None:
        """Read the picture of a row; None where there is none to show."""
        if row["status"] != "ok":
            self.drop(row, f"no picture: {row['status']}", row["reason"])
            return None
        picture = read_picture(self.root, row["path"], sha256=row["sha256"])
        if isinstance(picture, NoPicture):
            self.drop(row, picture.reason, picture.detail or None)
            return None
        return picture

    def drop(self, row: dict[str, Any], reason: str, detail: str | None = None) -> None:
        """Keep the reason why an image is not shown."""
        self.drops.append((row["image_id"], None, self.stage, reason, detail))

    def write(self, out: Path) -> dict[str, int]:
        """Write what was dropped; give the reasons and how often each was met."""
        write_table(out, DROPS, pl.DataFrame(self.drops, schema=DROPS.schema, orient="row"))
        return dict(sorted(Counter(reason for _, _, _, reason, _ in self.drops).items()))
