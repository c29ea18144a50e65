"""From images and matches to how far mapped diversity can be off for images that were refused, or not told."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.families.collection_scores import QvsOptions, kernel_params
from culturekit.metrics.diversity.bounds import bounds_of_codes
from culturekit.metrics.diversity.kernels import Weights
from culturekit.metrics.scoring.collection_answers import Answer, answer_rows, over_repeats
from culturekit.metrics.scoring.image_collections import ImageCollection, checked, image_collections, nearest_of
from culturekit.metrics.scoring.score_rows import Scored, scored
from culturekit.records.schemas import IMAGES, MATCHES

__all__ = ["score_bounds"]


@dataclass(frozen=True, slots=True)
class AskedImages:
    """All images that were asked for, as rows of matches, and which of them nobody can tell."""

    rows: pl.DataFrame
    unknown: frozenset[str]


def score_bounds(matches: pl.DataFrame, images: pl.DataFrame, *, options: QvsOptions) -> Scored:
    """Score the worst and the best case of mapped diversity, where a model has unknown images for a concept.

    An image that was asked for and not made, that no artifact was found for, or of which the mapping abstained, is
    unknown; it is not left out. Batches are made of all images that were asked for, in order of their slots. Images
    that name no prompt and repeat have no bounds here.

    Args:
        matches: conforms to MATCHES; only the nearest match of an image counts.
        images: conforms to IMAGES: every image asked for, also those that were refused.
        options: the kernels, the order, the size of a batch, and of what the interval speaks.

    Returns:
        The metrics `vs_worst` and `vs_best`, with the share of unknown images in their params.

    Raises:
        UsageError: a table does not conform, or an option breaks its rule.
    """
    asked = asked_images(matches, images)
    answers = [
        answer
        for collection in image_collections(asked.rows, missing=options.missing, size=options.size, partial="drop")
        if collection.repeats is not None and not asked.unknown.isdisjoint(collection.images)
        for answer in collection_answers(collection, asked.unknown, options)
    ]
    return scored(*answer_rows(answers, options.benchmark))


def asked_images(matches: pl.DataFrame, images: pl.DataFrame) -> AskedImages:
    """Give every image asked for a row; one that is unknown has no labels."""
    nearest = nearest_of(matches)
    checked(images, IMAGES)
    strangers = nearest.join(images, on="image_id", how="anti")
    if strangers.height:
        raise UsageError(
            f"{strangers.height} matches are of images that the table of images lacks",
            where=f"image {strangers['image_id'][0]!r}",
            hint="Give the images that were mapped.",
        )
    place = ("model", "prompt_id", "concept", "repeat", "slot")
    concepts = pl.col("concept") if "concept" in images.columns else pl.lit(None, pl.String).alias("concept")
    asked = images.select("image_id", "model", "prompt_id", concepts, "repeat", "slot")
    found = nearest.filter(~pl.col("abstained") & pl.col("artifact").is_not_null())
    methods = nearest["method"].unique().sort().to_list() or ["none"]
    rows = asked.join(found.drop(place), on="image_id", how="left", maintain_order="left").with_columns(
        pl.col("method").fill_null(methods[0]),
        pl.col("countries").fill_null([]),
        pl.col("rank").fill_null(1).cast(pl.UInt16),
        pl.col("score", "margin", "country_margin").fill_null(0.0).cast(pl.Float32),
        pl.col("abstained").fill_null(value=False),
    )
    unknown = asked.join(found, on="image_id", how="anti")["image_id"]
    return AskedImages(rows.select(list(MATCHES.columns)), frozenset(unknown.to_list()))


def collection_answers(images: ImageCollection, unknown: frozenset[str], options: QvsOptions) -> Iterator[Answer]:
    """Bound the diversity of one model and concept."""
    told = ~images.images.is_in(list(unknown)).to_numpy()
    shares = {"unknown": int((~told).sum()), "images": len(told)}
    for q in options.orders:
        for weights in options.kernels:
            bounds = batch_bounds(images, told, weights=weights, q=q)
            params = {**kernel_params(images, weights, q, options), **shares}
            for metric, values in zip(("vs_worst", "vs_best"), bounds.T, strict=True):
                yield bound_answer(images, metric, values, params, options)


def batch_bounds(
    images: ImageCollection, told: NDArray[np.bool_], *, weights: Weights, q: float
) -> NDArray[np.float64]:
    """Bound VS/N of each batch, float64 (n_batches, 2); batches of the same pattern are solved once."""
    rows = images.batches.rows
    bounds = np.empty((len(rows), 2))
    solved: dict[tuple[Any, ...], tuple[float, float]] = {}
    for number, batch in enumerate(rows):
        codes = images.codes[batch[told[batch]]]
        key = pattern(codes)
        if (key, len(batch)) not in solved:
            solved[key, len(batch)] = bounds_of_codes(codes, len(batch) - len(codes), weights=weights, q=q)
        bounds[number] = solved[key, len(batch)]
    return np.asarray(bounds / max(rows.shape[1], 1))


def pattern(codes: NDArray[np.int64]) -> tuple[Any, ...]:
    """Say which labels of a batch are equal, whatever they are."""
    numbers: list[dict[int, int]] = [{} for _ in codes.T]
    return tuple(
        tuple(seen.setdefault(code, len(seen)) for code in column.tolist())
        for seen, column in zip(numbers, codes.T, strict=True)
    )


def bound_answer(
    images: ImageCollection, metric: str, values: NDArray[np.float64], params: dict[str, object], options: QvsOptions
) -> Answer:
    """Average a bound over batches, repeats and prompts."""
    entered = int(images.batches.present.sum())
    return over_repeats(
        images,
        values,
        images.batches.rows[:, 0],
        (metric, params),
        entered,
        target=options.target,
        confidence=options.confidence,
    )
