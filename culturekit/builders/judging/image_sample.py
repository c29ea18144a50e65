"""Some images of each model and concept, drawn by whole repeats, so that batches of eight stay whole."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.stages.stage_command import Seed, Typed
from culturekit.storage.digests import digest

__all__ = ["EVERY_IMAGE", "ImageSample", "drawn", "sample_note"]


@dataclass(frozen=True, slots=True)
class ImageSample:
    """At most so many images of each model and concept, but at least one repeat; all of them where no number is given.

    A repeat is drawn or left by a hash of the seed, its prompt and its number. So it is the same repeats of every
    model, and a larger sample holds the smaller one: what was asked about is not asked again.
    """

    images: Annotated[
        int | None,
        Field(ge=1, description="At most so many images of each model and concept, by whole repeats. [all]"),
        Typed("sample"),
    ] = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        """Refuse a sample of nothing."""
        if self.images is not None and self.images < 1:
            raise UsageError("a sample has at least one image", found=str(self.images))


EVERY_IMAGE = ImageSample()


def drawn(images: pl.DataFrame, sample: ImageSample) -> pl.DataFrame:
    """Take the images that are drawn, in their order.

    Every prompt of a concept has a repeat drawn before any has two. Images that were asked for and not made count as
    the others do, so that the same repeats are drawn of a model that refused some. An image without prompt or repeat
    is drawn by itself.
    """
    if sample.images is None:
        return images
    concept = pl.col("concept") if "concept" in images.columns else pl.lit(None, pl.String)
    placed = images.with_columns(concept_of=concept, unit=unit_of())
    taken: list[str] = []
    for own in placed.partition_by("model", "concept_of", maintain_order=True):
        taken += taken_of(own, sample.images, sample.seed)
    return images.filter(placed["unit"].is_in(taken) if taken else pl.lit(value=False))


def unit_of() -> pl.Expr:
    """Name what is drawn as a whole: a repeat of a prompt, or an image that belongs to none."""
    loose = pl.col("prompt_id").is_null() | pl.col("repeat").is_null()
    repeat = pl.concat_str("model", "prompt_id", pl.col("repeat").cast(pl.String), separator="\n")
    return pl.when(loose).then(pl.col("image_id")).otherwise(repeat)


def taken_of(images: pl.DataFrame, most: int, seed: int) -> Iterator[str]:
    """Name the units drawn of one model and concept, until the next would be too many."""
    units = images.group_by("unit").agg(pl.col("prompt_id", "repeat").first(), pl.len().alias("images"))
    keyed = [(unit, prompt, chance(seed, prompt, repeat, unit), size) for unit, prompt, repeat, size in units.rows()]
    turn: dict[str | None, int] = {}
    order = []
    for unit, prompt, own, size in sorted(keyed, key=lambda each: each[2]):
        turn[prompt] = turn.get(prompt, -1) + 1
        order.append((turn[prompt], chance(seed, prompt, turn[prompt], ""), own, unit, size))
    total = 0
    for *_, unit, size in sorted(order):
        if total and total + size > most:
            return
        total += size
        yield unit


def chance(seed: int, prompt: str | None, repeat: int | None, unit: str) -> str:
    """Give the lot of a repeat, whatever its model; of an image that belongs to none, its own."""
    return digest([seed, prompt, repeat] if prompt is not None and repeat is not None else [seed, unit])


def sample_note(images: pl.DataFrame, taken: pl.DataFrame, sample: ImageSample) -> dict[str, object]:
    """Say in notes what was drawn; nothing where all images were taken."""
    return {"sample": {**asdict(sample), "drawn": taken.height, "of": images.height}} if sample.images else {}
