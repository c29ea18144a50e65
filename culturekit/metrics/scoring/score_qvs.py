"""From matches and quality to the CUBE scores: quality, mapped diversity, and their product."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.metrics.arguments import argument_error, check_choice, check_order, check_size
from culturekit.metrics.catalog import CATALOG
from culturekit.metrics.diversity.batch_diversity import Batches, Partial
from culturekit.metrics.diversity.kernels import STANDARD_KERNELS, Weights, check_weights, kernel_name
from culturekit.metrics.diversity.labels import Missing
from culturekit.metrics.scoring.image_collections import ImageCollection, image_collections, quality_by_scorer
from culturekit.metrics.statistics.intervals import Interval, interval
from culturekit.records.schemas import SCORES
from culturekit.storage.digests import canonical_json

__all__ = ["QvsOptions", "check_options", "score_qvs"]

Values: TypeAlias = NDArray[np.float64]
Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class QvsOptions:
    """What to score, and how.

    Attributes:
        kernels: weights of (continent, country, artifact), one triple per kernel.
        q: the order of the Vendi score.
        size: how many images make a batch.
        missing: whether a missing label is unlike every other, or equal to other missing ones.
        partial: whether an incomplete batch is dropped, or divided by `size` as in the authors' notebook.
        confidence: of the intervals.
        benchmark: the name under which the scores stand.
    """

    kernels: tuple[Weights, ...] = tuple(STANDARD_KERNELS.values())
    q: float = 1.0
    size: int = 8
    missing: Missing = "distinct"
    partial: Partial = "drop"
    confidence: float = 0.95
    benchmark: str = "cube"


def score_qvs(matches: pl.DataFrame, quality: pl.DataFrame | None, *, options: QvsOptions) -> pl.DataFrame:
    """Score each model on each concept.

    Within a repeat of a prompt, images ordered by slot make the batches. A score is averaged over the
    batches (quality: the images) of a repeat, then over repeats, then over prompts. Images that name neither
    prompt nor repeat are one whole collection: its scores have no interval, and `params` says `whole`.
    Where nothing can be scored, such as when no batch is complete, the value is NaN and `n` is 0.

    Args:
        matches: conforms to MATCHES; only the nearest match of an image counts.
        quality: conforms to QUALITY, one set of rows per scorer; without it only diversity is scored.
        options: what to score, and how.

    Returns:
        Scores that conform to SCORES, in the order of its key; they do not depend on the order of the rows given.

    Raises:
        UsageError: a table does not conform, or an option breaks its rule.
    """
    check_options(options)
    scorers = quality_by_scorer(quality)
    collections = image_collections(matches, missing=options.missing, size=options.size, partial=options.partial)
    rows = [score for images in collections for score in collection_rows(images, scorers, options)]
    return pl.DataFrame(rows, schema=SCORES.schema, orient="row").sort(SCORES.key, maintain_order=True)


def check_options(options: QvsOptions) -> None:
    """Refuse options that break their rules, before any work is done."""
    check_order(options.q)
    check_size(options.size)
    check_choice("missing", options.missing, ("distinct", "equal"))
    check_choice("partial", options.partial, ("drop", "paper"))
    kernels = [check_weights(weights) for weights in options.kernels]
    if len(set(kernels)) < len(kernels):
        raise argument_error("kernels", "triples of weights, each given once", options.kernels)


def collection_rows(images: ImageCollection, scorers: Mapping[str, pl.DataFrame], options: QvsOptions) -> Iterator[Row]:
    """Make all score rows of one model and concept."""
    quality = {scorer: images.quality(scores) for scorer, scores in scorers.items()}
    for scorer, values in quality.items():
        yield quality_row(images, values, options, scorer=scorer)
    for weights in options.kernels:
        diversity = images.diversity(weights=weights, q=options.q)
        params = kernel_params(images, weights, options)
        yield diversity_row(images, diversity, params, options, metric="vs")
        for scorer, values in quality.items():
            weighted = diversity * batch_means(values, images.batches)
            yield diversity_row(images, weighted, {**params, "scorer": scorer}, options, metric="qvs")


def batch_means(values: Values, batches: Batches) -> Values:
    """Average the values of the images of each batch, float64 (n_batches,); NaN where one is missing."""
    filled = np.where(batches.present, values[batches.rows], 0.0)
    return np.asarray(filled.sum(axis=1) / batches.present.sum(axis=1))


def kernel_params(images: ImageCollection, weights: Weights, options: QvsOptions) -> dict[str, object]:
    """Say how a diversity was computed; JSON has no infinity, so that order is a text."""
    return {
        "kernel": kernel_name(weights),
        "weights": list(weights),
        "q": "inf" if math.isinf(options.q) else float(options.q),
        "size": "whole" if images.repeats is None else options.size,
        "labels": images.label_kind,
        "method": images.method,
        "partial": options.partial,
        "missing": options.missing,
    }


def quality_row(images: ImageCollection, values: Values, options: QvsOptions, *, scorer: str) -> Row:
    """Make the row of the mean quality from the value of each image; images that the scorer lacks are not in `n`."""
    params = {"labels": images.label_kind, "scorer": scorer}
    answer = estimate(images, values, np.arange(len(values)), options.confidence)
    return row(images, options.benchmark, metric="quality", answer=answer, entered=answer.n, params=params)


def diversity_row(
    images: ImageCollection, values: Values, params: Mapping[str, object], options: QvsOptions, *, metric: str
) -> Row:
    """Make the row of one kernel from the value of each batch.

    A value that is NaN belongs to a batch with an image that the scorer lacks; the batch is left out.
    """
    entered = int(images.batches.present[np.isfinite(values)].sum())
    answer = estimate(images, values, images.batches.rows[:, 0], options.confidence)
    params = {**params, "images_left_out": len(images.codes) - entered}
    return row(images, options.benchmark, metric=metric, answer=answer, entered=entered, params=params)


def estimate(images: ImageCollection, values: Values, firsts: NDArray[np.int64], confidence: float) -> Interval:
    """Average values, (n,), over each repeat, then over repeats, then over prompts.

    `firsts`, (n,), is the number of an image that a value comes from, whose repeat it belongs to. NaN is a
    value that is not known.
    """
    known = np.isfinite(values)
    repeats = images.repeats
    if repeats is None or not known.any():
        mean = float(values[known].mean()) if known.any() else math.nan
        return Interval(mean, math.nan, math.nan, int(known.sum()), "these")
    repeat = repeats.of_image[firsts[known]]
    counts = np.bincount(repeat)
    seen = np.flatnonzero(counts)
    means = np.bincount(repeat, weights=values[known])[seen] / counts[seen]
    answer = interval(means, prompts=repeats.prompts[seen], repeats=repeats.numbers[seen], confidence=confidence)
    return replace(answer, n=int(known.sum()))


def row(
    images: ImageCollection,
    benchmark: str,
    *,
    metric: str,
    answer: Interval,
    entered: int,
    params: Mapping[str, object],
) -> Row:
    """Write one score; a limit that is not known is null."""
    return {
        "metric": metric,
        "model": images.model,
        "benchmark": benchmark,
        "concept": images.concept,
        "params": canonical_json(params).decode(),
        "value": answer.value,
        "ci_low": None if math.isnan(answer.low) else answer.low,
        "ci_high": None if math.isnan(answer.high) else answer.high,
        "n": entered,
        "unit": CATALOG[metric].unit,
    }
