"""How the images of one model and concept are scored: the options, their quality, their diversity and both."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from culturekit.core.declared import Seed, Typed, check_choices
from culturekit.core.defaults import BATCH_SIZE, CONFIDENCE
from culturekit.core.errors import argument_error
from culturekit.metrics.arguments import check_count, check_order
from culturekit.metrics.corrected.audit_gates import Design
from culturekit.metrics.diversity.batch_diversity import Batches, Partial
from culturekit.metrics.diversity.kernel_diversity import STANDARD_KERNELS, Weights, check_weights, kernel_name
from culturekit.metrics.diversity.labels import Missing
from culturekit.metrics.statistics.intervals import Interval, Target
from culturekit.scores.image_collections import Answer, ImageCollection, over_repeats, whole_diversity, whole_quality

Values: TypeAlias = NDArray[np.float64]

# Of commands that read answers
Distinct: TypeAlias = Annotated[
    bool, Field(description="People whose answers are nearly the same are several. [the first counts, others do not]")
]

Within: TypeAlias = Literal["none", "country"]  # Whether diversity is also scored within each country that prompts name


def named_weights(stated: object) -> object:
    """Take a kernel by its name where weights may stand; what is no name is left as it is."""
    return check_weights(stated) if isinstance(stated, str) else stated


Kernels: TypeAlias = tuple[
    Annotated[Weights, BeforeValidator(named_weights, json_schema_input_type=Literal[*STANDARD_KERNELS] | Weights)], ...
]


def weights_of(text: str) -> Weights:
    """Read a kernel: a name, or three numbers with commas; a number may be a fraction such as 1/3."""
    if text in STANDARD_KERNELS:
        return STANDARD_KERNELS[text]
    try:
        return check_weights([float(Fraction(part.strip())) for part in text.split(",")])
    except (ValueError, ZeroDivisionError) as error:
        names = ", ".join(STANDARD_KERNELS)
        raise argument_error("--kernel", f"three numbers with commas, or one of {names}", text) from error


@dataclass(frozen=True, slots=True)
class QvsOptions:
    """What to score, and how; `other_orders` stand beside `q`, and scores under the name of the `benchmark`."""

    kernels: Annotated[
        Kernels,
        Field(description="Each a name, or weights of continent, country and artifact."),
        Typed(
            "kernel",
            weights_of,
            help="Weights of continent, country and artifact, such as 0,0.5,0.5, or a name: continent, country, "
            "artifact, hierarchical, uniform; repeatable. [the five named ones]",
        ),
    ] = tuple(STANDARD_KERNELS.values())
    q: Annotated[
        float,
        Field(description="Order of the Vendi score; infinity is one."),
        Typed(help="Order of the Vendi score; repeatable, inf is one. [1]", others="other_orders"),
    ] = 1.0
    other_orders: tuple[float, ...] = ()
    size: Annotated[int, Field(ge=2, description="Images per batch.")] = BATCH_SIZE
    missing: Annotated[Missing, Field(description="Missing labels: each unlike all others, or all the same.")] = (
        "distinct"
    )
    partial: Annotated[
        Partial, Field(description="Incomplete batches: dropped, or divided by the full size as in CUBE's notebook.")
    ] = "drop"
    target: Annotated[
        Target, Field(description="Intervals speak about these prompts, or about all that at least 20 stand for.")
    ] = "these"
    confidence: Annotated[float, Field(description="How often intervals are to hold the truth.")] = CONFIDENCE
    within: Annotated[Within, Field(description="Also score within each country that prompts name, by artifact.")] = (
        "none"
    )
    benchmark: str = "cube"

    @property
    def orders(self) -> tuple[float, ...]:
        """All orders, the main one first."""
        return (self.q, *self.other_orders)

    def __post_init__(self) -> None:
        """Refuse options that break their rules, before any work is done."""
        for order in self.orders:
            check_order(order)
        if len(set(self.orders)) < len(self.orders):
            raise argument_error("other_orders", "orders other than q, each given once", self.other_orders)
        check_count("size", self.size)
        check_choices(self)
        if not 0 < self.confidence < 1:
            raise argument_error("confidence", "between 0 and 1", self.confidence)
        kernels = [check_weights(weights) for weights in self.kernels]
        if not kernels or len(set(kernels)) < len(kernels):
            raise argument_error("kernels", "triples of weights, each given once", self.kernels)


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
    answer = over_repeats(
        images, values, firsts, (metric, params), entered, target=options.target, confidence=options.confidence
    )
    return answer if metric == "qvs" else replace(answer, interval=between(answer.interval, 1 / options.size, 1.0))


def between(found: Interval, lowest: float, highest: float) -> Interval:
    """Keep limits where a score can lie."""
    if math.isnan(found.low):
        return found
    return replace(found, low=max(found.low, min(lowest, found.value)), high=min(found.high, max(highest, found.value)))


PAIRS_ORDER = 2.0  # The order at which kernels with artifacts are corrected


@dataclass(frozen=True, slots=True)
class Correction:
    """Whose answers correct, about which images, and the seed of the draws behind the intervals.

    `pool` is needed only when several pools of people answered. Where it is not `required`, an audit that
    cannot carry any correction leaves mapped scores only, and says why.
    """

    pool: Annotated[str | None, Field(description="Whose answers correct, when several pools answered.")] = None
    seed: Seed = 0
    required: bool = True
    design: Annotated[
        Design,
        Field(description="Audited images were drawn evenly, which is checked; unknown takes others, and is marked."),
    ] = "drawn"
    distinct: Distinct = False


NO_CORRECTION = Correction()
