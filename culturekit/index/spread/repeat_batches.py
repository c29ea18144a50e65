"""Images cut into batches: those of a repeat of a prompt, in the order of their slots, so many at a time."""

from collections import Counter
from dataclasses import dataclass

import polars as pl

__all__ = ["RepeatBatch", "repeat_batches"]

NO_PROMPT = "images that name no prompt or repeat"
INCOMPLETE = "images of an incomplete batch"


@dataclass(frozen=True, slots=True)
class RepeatBatch:
    """One full batch: where it stands, and path and hash of each picture."""

    model: str
    concept: str | None
    prompt_id: str
    repeat: int
    number: int
    pictures: tuple[tuple[str, str], ...]


def repeat_batches(images: pl.DataFrame, size: int) -> tuple[list[RepeatBatch], Counter[str]]:
    """Cut images that have a picture into full batches, and count the images that are in none."""
    left_out: Counter[str] = Counter()
    ready = images.filter(pl.col("status") == "ok")
    left_out["images without a picture"] += images.height - ready.height
    placed = ready.drop_nulls(["prompt_id", "repeat"])
    left_out[NO_PROMPT] += ready.height - placed.height
    concept = [] if "concept" in placed.columns else [pl.lit(None, pl.String).alias("concept")]
    ordered = placed.with_columns(concept).sort("model", "prompt_id", "repeat", "slot", "image_id")
    batches: list[RepeatBatch] = []
    for (model, prompt, repeat), rows in ordered.group_by("model", "prompt_id", "repeat", maintain_order=True):
        pictures = tuple(rows.select("path", "sha256").iter_rows())
        full = len(pictures) // size
        left_out[INCOMPLETE] += len(pictures) - full * size
        for number in range(full):
            own = pictures[number * size : (number + 1) * size]
            batches.append(RepeatBatch(str(model), rows["concept"][0], str(prompt), int(str(repeat)), number, own))
    return batches, left_out
