"""From matches and quality to the CUBE scores: quality, mapped diversity, and their product."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error, check_choice, check_order, check_size
from culturekit.metrics.diversity.batch_diversity import Batches, Partial
from culturekit.metrics.diversity.kernels import STANDARD_KERNELS, Weights, check_weights, kernel_name
from culturekit.metrics.diversity.labels import Missing
from culturekit.metrics.scoring.image_collections import ImageCollection, image_collections, quality_by_scorer
from culturekit.metrics.scoring.qvs_rows import Answer, over_repeats, score_row, value_rows
from culturekit.metrics.scoring.scored import Row, Scored, scored
from culturekit.metrics.scoring.whole_collections import whole_diversity, whole_quality
from culturekit.metrics.statistics.intervals import Target
from culturekit.records.schemas import VALUES

__all__ = ["QvsOptions", "Within", "check_options", "score_qvs"]

Values: TypeAlias = NDArray[np.float64]

Within: TypeAlias = Literal["none", "country"]
"""Whether diversity is also scored within each country that prompts name."""

ARTIFACT: Weights = (0.0, 0.0, 1.0)
"""The kernel within a culture: inside one country, artifacts are all that can differ."""


@dataclass(frozen=True, slots=True)
class QvsOptions:
    """What to score, and how.

    Attributes:
        kernels: weights of (continent, country, artifact), one triple per kernel.
        q: the order of the Vendi score.
        other_orders: more orders to score beside it.
        size: how many images make a batch.
        missing: whether a missing label is unlike every other, or equal to other missing ones.
        partial: whether an incomplete batch is dropped, or divided by `size` as in the authors' notebook.
        target: whether intervals speak about these prompts, or about the population that they are drawn from.
        confidence: of the intervals.
        within: whether images of prompts that name a country are also scored country by country, by artifact.
        benchmark: the name under which the scores stand.
    """

    kernels: tuple[Weights, ...] = tuple(STANDARD_KERNELS.values())
    q: float = 1.0
    other_orders: tuple[float, ...] = ()
    size: int = 8
    missing: Missing = "distinct"
    partial: Partial = "drop"
    target: Target = "these"
    confidence: float = CONFIDENCE
    within: Within = "none"
    benchmark: str = "cube"

    @property
    def orders(self) -> tuple[float, ...]:
        """All orders, the main one first."""
        return (self.q, *self.other_orders)


def score_qvs(
    matches: pl.DataFrame,
    quality: pl.DataFrame | None,
    *,
    options: QvsOptions,
    countries: Mapping[str, str] | None = None,
) -> Scored:
    """Score each model on each concept.

    Within a repeat of a prompt, images ordered by slot make the batches. A score is averaged over the
    batches (quality: the images) of a repeat, then over repeats, then over prompts; the means of the repeats
    are its values. Images that name neither prompt nor repeat are one whole collection: `params` says `whole`,
    and its interval is a jackknife's, which is approximate. Where nothing can be scored, such as when no batch is
    complete, the value is NaN and `n` is 0.

    Args:
        matches: conforms to MATCHES; only the nearest match of an image counts.
        quality: conforms to QUALITY, one set of rows per scorer; without it only diversity is scored.
        options: what to score, and how.
        countries: of the prompts that name one; needed to score within countries.

    Returns:
        Scores that conform to SCORES and values that conform to VALUES, both in the order of their keys; they do
        not depend on the order of the rows given.

    Raises:
        UsageError: a table does not conform, or an option breaks its rule.
    """
    check_options(options)
    scorers = quality_by_scorer(quality)
    groups = [(list(collections(matches, options, None)), options)]
    if options.within == "country":
        if not countries:
            raise UsageError(
                "no prompt names a country", hint="Give the table of prompts, and images of prompts that name one."
            )
        inside = replace(options, kernels=(ARTIFACT,))
        groups.append((list(collections(matches, options, countries)), inside))
    answers = [
        answer for parts, how in groups for images in parts for answer in collection_answers(images, scorers, how)
    ]
    rows: list[Row] = [score_row(answer, options.benchmark) for answer in answers]
    values = [value_rows(answer, options.benchmark) for answer in answers]
    short = sum(len(images.batches.rows) == 0 for parts, _ in groups for images in parts)
    return scored(
        rows,
        pl.concat(values) if values else pl.DataFrame(schema=VALUES.schema),
        left_out={f"model and concept of which no repeat has {options.size} images": short} if short else {},
    )


def collections(
    matches: pl.DataFrame, options: QvsOptions, countries: Mapping[str, str] | None
) -> Iterator[ImageCollection]:
    """Part the images into what is scored together."""
    return image_collections(
        matches, missing=options.missing, size=options.size, partial=options.partial, countries=countries
    )


def check_options(options: QvsOptions) -> None:
    """Refuse options that break their rules, before any work is done."""
    for order in options.orders:
        check_order(order)
    if len(set(options.orders)) < len(options.orders):
        raise argument_error("other_orders", "orders other than q, each given once", options.other_orders)
    check_size(options.size)
    check_choice("missing", options.missing, ("distinct", "equal"))
    check_choice("partial", options.partial, ("drop", "paper"))
    check_choice("target", options.target, ("these", "population"))
    check_choice("within", options.within, ("none", "country"))
    if not 0 < options.confidence < 1:
        raise argument_error("confidence", "between 0 and 1", options.confidence)
    kernels = [check_weights(weights) for weights in options.kernels]
    if len(set(kernels)) < len(kernels):
        raise argument_error("kernels", "triples of weights, each given once", options.kernels)


def collection_answers(
    images: ImageCollection, scorers: Mapping[str, pl.DataFrame], options: QvsOptions
) -> Iterator[Answer]:
    """Score one model and concept in all ways asked for."""
    quality = {scorer: images.quality(scores) for scorer, scores in scorers.items()}
    for scorer, values in quality.items():
        yield quality_answer(images, values, options, scorer=scorer)
    diversity_of = images.scorer()
    for q in options.orders:
        for weights in options.kernels:
            diversity = diversity_of(weights, q)
            params = kernel_params(images, weights, q, options)
            yield diversity_answer(images, diversity, None, params, options)
            for scorer, values in quality.items():
                yield diversity_answer(images, diversity, values, {**params, "scorer": scorer}, options)


def batch_means(values: Values, batches: Batches) -> Values:
    """Average the values of the images of each batch, float64 (n_batches,); NaN where one is missing."""
    filled = np.where(batches.present, values[batches.rows], 0.0)
    return np.asarray(filled.sum(axis=1) / batches.present.sum(axis=1))


def kernel_params(images: ImageCollection, weights: Weights, q: float, options: QvsOptions) -> dict[str, object]:
    """Say how a diversity was computed; JSON has no infinity, so that order is a text."""
    return {
        "kernel": kernel_name(weights),
        "weights": list(weights),
        "q": "inf" if math.isinf(q) else float(q),
        "size": "whole" if images.repeats is None else options.size,
        "method": images.method,
        "partial": options.partial,
        "missing": options.missing,
        **interval_params(images, options),
    }


def interval_params(images: ImageCollection, options: QvsOptions) -> dict[str, object]:
    """Say what an interval speaks about, and of which labels and prompts the images are."""
    inside = {} if images.country is None else {"within": "country"}
    return {"labels": images.label_kind, "target": options.target, "confidence": options.confidence, **inside}


def quality_answer(images: ImageCollection, values: Values, options: QvsOptions, *, scorer: str) -> Answer:
    """Average the quality of each image; images that the scorer lacks are not in `n`."""
    params = {**interval_params(images, options), "scorer": scorer}
    if images.repeats is None:
        return whole_quality(images, values, params, confidence=options.confidence)
    entered = int(np.isfinite(values).sum())
    image = np.arange(len(values))
    return over_repeats(
        images, values, image, ("quality", params), entered, target=options.target, confidence=options.confidence
    )


def diversity_answer(
    images: ImageCollection,
    diversity: Values,
    quality: Values | None,
    params: Mapping[str, object],
    options: QvsOptions,
) -> Answer:
    """Average VS/N of each batch, multiplied by the quality of its images where that is given.

    A batch with an image that the scorer lacks has no value, and is left out.
    """
    metric = "vs" if quality is None else "qvs"
    values = diversity if quality is None else diversity * batch_means(quality, images.batches)
    entered = int(images.batches.present[np.isfinite(values)].sum())
    params = {**params, "images_left_out": len(images.codes) - entered}
    if images.repeats is None:
        return whole_diversity(images, float(values[0]), quality, (metric, params), confidence=options.confidence)
    firsts = images.batches.rows[:, 0]
    return over_repeats(
        images, values, firsts, (metric, params), entered, target=options.target, confidence=options.confidence
    )
