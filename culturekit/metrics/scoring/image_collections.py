"""The images of one model and one concept: their labels, their quality, their repeats and batches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.catalog.metric import scale_of
from culturekit.metrics.diversity.batch_diversity import Batches, BatchScorer, Partial, cut_batches, scorer_of_batches
from culturekit.metrics.diversity.labels import LEVELS, Missing, code_labels
from culturekit.metrics.scoring.score_rows import Repeats, repeats_in
from culturekit.records.schemas import MATCHES, QUALITY
from culturekit.records.slots import check_slots
from culturekit.records.tables import Table

__all__ = [
    "ImageCollection",
    "checked",
    "image_collections",
    "images_of_no_country",
    "nearest_of",
    "quality_by_scorer",
]

LABEL_KINDS = {"truth": "truth", "vlm": "tagged"}
"""What labels are called, by the method that gave them; all others are `mapped`."""


@dataclass(frozen=True, slots=True)
class ImageCollection:
    """The images of one model and concept, ordered by prompt, repeat and slot.

    Attributes:
        model: the model's name.
        concept: the concept, or None.
        country: the country that the prompts name, where collections are made of such prompts; else None.
        method: how the images were labelled; `truth` where the simulator said what it drew.
        images: str, (n_images,): image ids.
        codes: int64, (n_images, 3): labels as codes, for continent, country, artifact.
        batches: which images make which batch; a collection without repeats is one batch.
        repeats: None where the images name neither prompt nor repeat.
    """

    model: str
    concept: str | None
    country: str | None
    method: str
    images: pl.Series
    codes: NDArray[np.int64]
    batches: Batches
    repeats: Repeats | None

    @property
    def label_kind(self) -> str:
        """`truth` for labels that are known, `tagged` for those that a model named, `mapped` for nearest artifacts."""
        return LABEL_KINDS.get(self.method.partition(" ")[0], "mapped")

    def quality(self, scores: pl.DataFrame) -> NDArray[np.float64]:
        """Look up a quality table of one scorer, float64 (n_images,), NaN where it lacks an image."""
        wanted = pl.DataFrame({"image_id": self.images})
        found = wanted.join(scores, on="image_id", how="left", maintain_order="left")
        return found["value"].to_numpy().astype(np.float64)

    def scorer(self) -> BatchScorer:
        """Give the function that computes VS/N of each batch from weights and order."""
        return scorer_of_batches(dict(enumerate(self.codes.T)), self.batches)


def image_collections(
    matches: pl.DataFrame,
    *,
    missing: Missing,
    size: int,
    partial: Partial,
    countries: Mapping[str, str] | None = None,
) -> Iterator[ImageCollection]:
    """Take the nearest match of each image, and part the images by model and concept, in alphabetical order.

    With `countries`, of prompts, only images of these prompts are taken, and parted by country too.
    """
    nearest = nearest_of(matches).with_columns(place=pl.lit(None, pl.String))
    if countries is not None:
        place = pl.col("prompt_id").replace_strict(dict(countries), default=None, return_dtype=pl.String)
        nearest = nearest.with_columns(place=place).drop_nulls("place")
    ordered = nearest.sort("model", "concept", "place", "prompt_id", "repeat", "slot", "image_id")
    for images in ordered.partition_by("model", "concept", "place", maintain_order=True):
        codes = code_labels(images.select(LEVELS), missing=missing, normalize=True)
        repeats = repeats_of(images)
        yield ImageCollection(
            model=images["model"][0],
            concept=images["concept"][0],
            country=images["place"][0],
            method=only_method(images),
            images=images["image_id"],
            codes=codes,
            batches=one_batch(len(codes)) if repeats is None else cut_batches(repeats.of_row, size, partial),
            repeats=repeats,
        )


def nearest_of(matches: pl.DataFrame) -> pl.DataFrame:
    """Take the nearest match of each image; an image whose nearest is not there is a mistake."""
    table = checked(matches, MATCHES)
    nearest = table.filter(pl.col("rank") == 1)
    beheaded = table.join(nearest, on="image_id", how="anti")
    if beheaded.height:
        raise UsageError(
            "an image has matches, and none of rank 1", expected="the nearest match of every image",
            found=f"{beheaded['image_id'].n_unique():,} images without, such as {beheaded['image_id'].min()!r}",
        )  # fmt: skip
    check_slots(nearest)
    return nearest


def images_of_no_country(matches: pl.DataFrame, prompts: pl.DataFrame) -> dict[str, int]:
    """Count the images that belong to no country: of prompts that no table knows, and of prompts that name none."""
    named = {"prompt_id": pl.String, "country": pl.String}
    images = matches.select("image_id", "prompt_id").unique("image_id")
    known = images.join(prompts.select(pl.col(name).cast(kind) for name, kind in named.items()), on="prompt_id")
    return {
        "images of prompts that the table of prompts does not have": images.height - known.height,
        "images of prompts that name no country": known["country"].null_count(),
    }


def checked(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Keep the declared columns of a table, or say in which ways it does not conform."""
    known = frame.select(name for name in frame.columns if name in table.columns)
    problems = table.problems(known)
    if problems:
        raise UsageError(f"not a {table.name} table: {'; '.join(problems)}")
    return known


def only_method(images: pl.DataFrame) -> str:
    """Give the method that labelled the images of one model and concept; several would be two measurements in one."""
    method, *others = images["method"].unique().sort().to_list()
    if others:
        raise UsageError(
            f"images of one model and concept are labelled by {len(others) + 1} methods",
            where=place_of(images),
            expected="one method",
            found=", ".join([method, *others]),
            hint="Score the matches of each method on their own.",
        )
    return str(method)


def place_of(images: pl.DataFrame) -> str:
    """Name the model and concept of some images in an error."""
    return f"model {images['model'][0]!r}, concept {images['concept'][0]!r}"


def one_batch(images: int) -> Batches:
    """Put all images into one batch."""
    return Batches(np.arange(images)[None, :], np.ones((1, images), np.bool_))


def repeats_of(images: pl.DataFrame) -> Repeats | None:
    """Find the repeats of ordered images; None when no image has both a prompt and a repeat."""
    placed = images.filter(pl.col("prompt_id").is_not_null() & pl.col("repeat").is_not_null()).height
    if placed == 0:
        return None
    if placed < images.height:
        raise UsageError(
            f"{images.height - placed} of {images.height} images lack a prompt or a repeat",
            where=place_of(images),
            expected="both for all images of a model and concept, or for none",
            hint="Without them only the diversity of the whole collection can be computed.",
        )
    return repeats_in(images)


def quality_by_scorer(quality: pl.DataFrame | None) -> dict[str, pl.DataFrame]:
    """Part a quality table by scorer, in alphabetical order; no table gives no scorers."""
    if quality is None:
        return {}
    table = checked(quality, QUALITY)
    unusable = table.filter(~pl.col("value").is_finite())
    if unusable.height:
        raise UsageError(
            f"the quality of {unusable.height} images is not finite",
            where=f"scorer {unusable['scorer'][0]!r}",
            expected="a number for each image",
            found=f"{unusable['value'][0]} for image {unusable['image_id'][0]!r}",
        )
    found = {rows["scorer"][0]: rows for rows in table.sort("scorer").partition_by("scorer")}
    for scorer, rows in found.items():
        ends = scale_of(scorer)
        beyond = rows.filter(~pl.col("value").is_between(*ends)) if ends else rows.clear()
        if ends and beyond.height:
            raise UsageError(
                f"the quality of {beyond.height} images lies off the scale of its scorer",
                where=f"scorer {scorer!r}, image {beyond['image_id'][0]!r}",
                expected=f"from {ends[0]:g} to {ends[1]:g}", found=f"{beyond['value'][0]:g}",
                hint="On another scale it is another scorer: give it a name of its own.",
            )  # fmt: skip
    return {scorer: rows.select("image_id", "value") for scorer, rows in found.items()}
