"""The images of one model and concept, their repeats and batches, and how their quality and diversity are scored."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from culturekit.core.choices import BATCH_SIZE, CONFIDENCE
from culturekit.core.declared import Seed, Typed, check_choices
from culturekit.core.errors import UsageError, argument_error
from culturekit.core.schemas import MATCHES, QUALITY
from culturekit.core.table import check_slots
from culturekit.core.tables import checked
from culturekit.metrics.arguments import check_count, check_order
from culturekit.metrics.corrected.audit_gates import Design
from culturekit.metrics.diversity.batch_diversity import (
    GROUPS,
    Batches,
    BatchScorer,
    Partial,
    cut_batches,
    jackknife,
    jackknife_groups,
    scorer_of_batches,
    vendi_of_kept,
)
from culturekit.metrics.diversity.labels import (
    LEVELS,
    STANDARD_KERNELS,
    Missing,
    Weights,
    check_weights,
    code_labels,
    counting_levels,
    kernel_name,
)
from culturekit.metrics.statistics.intervals import Interval, Target, mean_interval, simple_mean
from culturekit.scores.catalog import describe, scale_of
from culturekit.scores.family import Repeats, Row, mean_over_repeats, no_interval, repeats_in, statistic_row, value_rows

Values: TypeAlias = NDArray[np.float64]

MEAN_QUALITY = describe(
    "quality",
    "Quality",
    "mean of s(x), over the images of a repeat, then repeats, then prompts",
    paper="Kannen et al. 2024, Beyond Aesthetics: Cultural Competence in Text-to-Image Models (CUBE), section 5",
    inputs=("matches: image_id, model, concept, prompt_id, repeat", "quality: image_id, scorer, value"),
    pitfalls=(
        "The scale is the scorer's own: HPS-v2 lies near 0.2 to 0.35 and is no probability, PickScore near 20. Values "
        "of two scorers cannot be compared.",
        "Scorers judge looks, and prefer what they were trained on; none of them knows whether a picture is right "
        "about a culture.",
    ),
    low=float("-inf"),
    high=float("inf"),
    direction="higher",
    licence="that of the scorer named in params.scorer",
)


# What labels are called, by the method that gave them; all others are `mapped`
LABEL_KINDS = {"truth": "truth", "vlm": "tagged"}


@dataclass(frozen=True, slots=True)
class ImageCollection:
    """The images of one model and concept, ordered by prompt, repeat and slot."""

    model: str  # the model's name
    concept: str | None  # the concept, or None
    country: str | None  # the country that the prompts name, where collections are made of such prompts; else None
    method: str  # how the images were labelled; `truth` where the simulator said what it drew
    images: pl.Series  # str, (n_images,): image ids
    codes: NDArray[np.int64]  # int64, (n_images, 3): labels as codes, for continent, country, artifact
    batches: Batches  # which images make which batch; a collection without repeats is one batch
    repeats: Repeats | None  # None where the images name neither prompt nor repeat

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
    matches: pl.DataFrame, options: "QvsOptions", countries: Mapping[str, str] | None = None
) -> Iterator[ImageCollection]:
    """Take the nearest match of each image, and part the images by model and concept, in alphabetical order.

    With `countries`, of prompts, only images of these prompts are taken, and parted by country too.
    """
    nearest = nearest_of(matches).with_columns(within=pl.lit(None, pl.String))
    if countries is not None:
        within = pl.col("prompt_id").replace_strict(dict(countries), default=None, return_dtype=pl.String)
        nearest = nearest.with_columns(within=within).drop_nulls("within")
    ordered = nearest.sort("model", "concept", "within", "prompt_id", "repeat", "slot", "image_id")
    for images in ordered.partition_by("model", "concept", "within", maintain_order=True):
        codes, repeats = code_labels(images.select(LEVELS), missing=options.missing, normalize=True), repeats_of(images)
        if repeats is None:
            batches = Batches(np.arange(len(codes))[None, :], np.ones((1, len(codes)), np.bool_))
        else:
            batches = cut_batches(repeats.of_row, options.size, options.partial)
        model, concept, country = (images[name][0] for name in ("model", "concept", "within"))
        method = only_method(images)
        yield ImageCollection(model, concept, country, method, images["image_id"], codes, batches, repeats)


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


def only_method(images: pl.DataFrame) -> str:
    """Give the method that labelled the images of one model and concept; several would be two measurements in one."""
    method, *others = images["method"].unique().sort().to_list()
    if others:
        raise UsageError(
            f"images of one model and concept are labelled by {len(others) + 1} methods", where=place_of(images),
            expected="one method", found=", ".join([method, *others]),
            hint="Score the matches of each method on their own.",
        )  # fmt: skip
    return str(method)


def place_of(images: pl.DataFrame) -> str:
    """Name the model and concept of some images in an error."""
    return f"model {images['model'][0]!r}, concept {images['concept'][0]!r}"


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
            f"the quality of {unusable.height} images is not finite", where=f"scorer {unusable['scorer'][0]!r}",
            expected="a number for each image", found=f"{unusable['value'][0]} for image {unusable['image_id'][0]!r}",
        )  # fmt: skip
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


# One score of a collection, over its repeats or of the whole, and its rows.

NO_REPEATS = np.empty(0)


@dataclass(frozen=True, slots=True)
class Answer:
    """A score before it is written down."""

    images: ImageCollection  # what was scored
    metric: str  # its name in the catalogue
    params: Mapping[str, object]  # how it was scored
    interval: Interval  # the value and its limits
    entered: int  # how many images went in
    # float64, (n_repeats,): the mean of each repeat, NaN where it has none; empty without repeats
    repeats: NDArray[np.float64]

    def location(self, benchmark: str) -> dict[str, str | None]:
        """Say where it stands."""
        images = self.images
        about = {"model": images.model, "concept": images.concept, "country": images.country}
        return {"metric": self.metric, "benchmark": benchmark, **about}


def over_repeats(
    images: ImageCollection,
    values: Values,
    firsts: NDArray[np.int64],
    what: tuple[str, Mapping[str, object]],
    entered: int,
    options: "QvsOptions",
) -> Answer:
    """Average values, (n,), NaN where not known, over each repeat, then over repeats, then over prompts.

    `firsts`, int64 (n,), has the number of an image that each value comes from, whose repeat it belongs to.
    """
    if images.repeats is None:
        raise ValueError("a whole collection has no repeats")
    answer, means = mean_over_repeats(
        values, images.repeats.of_row[firsts], images.repeats, target=options.target, confidence=options.confidence
    )
    return Answer(images, *what, answer, entered, means)


def answer_rows(answers: Sequence[Answer], benchmark: str) -> tuple[list[Row], list[pl.DataFrame]]:
    """Write scores, and the means of the repeats that they were averaged from."""
    rows, values = [], []
    for each in answers:
        location = each.location(benchmark)
        answer = replace(each.interval, n=each.entered)
        rows.append(statistic_row(**location, answer=answer, params=each.params))  # type: ignore[arg-type]
        if each.images.repeats is not None:
            values.append(value_rows(location, each.params, each.images.repeats.values(each.repeats)))
    return rows, values


def whole_diversity(
    images: ImageCollection, value: float, quality: Values | None, params: Mapping[str, object], confidence: float
) -> Answer:
    """Give VS/N of the whole collection, times the mean quality where that is given.

    The interval is around the value whose bias the jackknife corrected, which stands in the parameters.
    """
    entered = len(images.codes) if math.isfinite(value) else 0
    weights, q = check_weights(params["weights"]), float(params["q"])  # type: ignore[arg-type]
    corrected = no_interval("population")
    if entered > 1:
        # The draw parts the images at random, always in the same way: their order is that of their ids.
        groups = jackknife_groups(len(images.codes), GROUPS, np.random.default_rng(0))
        levels = counting_levels(weights)
        diversity = vendi_of_kept([images.codes[:, level] for level in levels], [weights[level] for level in levels], q)

        def score(kept: NDArray[np.bool_]) -> float:
            found = diversity(kept) / len(kept)
            return found if quality is None else found * float(quality[kept].mean())

        corrected = jackknife(score, groups, confidence=confidence)
    beside = {
        "interval": "jackknife, approximate",
        "bias_corrected": corrected.value if math.isfinite(corrected.value) else None,
        "target": "population",
    }
    answer = Interval(value, corrected.low, corrected.high, entered, "population")
    return Answer(images, "vs" if quality is None else "qvs", {**params, **beside}, answer, entered, NO_REPEATS)


# How they are scored.


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
    known = values[np.isfinite(values)]
    if images.repeats is not None:
        return over_repeats(images, values, np.arange(len(values)), ("quality", params), len(known), options)
    answer = no_interval("population")
    if len(known):
        answer = mean_interval(simple_mean(known), n=len(known), target="population", confidence=options.confidence)
    return Answer(images, "quality", {**params, "target": "population"}, answer, len(known), NO_REPEATS)


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
    values = diversity if quality is None else diversity * batch_means(quality, images.batches)
    entered = int(images.batches.present[np.isfinite(values)].sum())
    params = {**params, "images_left_out": len(images.codes) - entered}
    if images.repeats is None:
        return whole_diversity(images, float(values[0]), quality, params, options.confidence)
    what = ("vs" if quality is None else "qvs", params)
    answer = over_repeats(images, values, images.batches.rows[:, 0], what, entered, options)
    found, lowest = answer.interval, 1 / options.size
    if quality is not None or math.isnan(found.low):
        return answer
    # limits are kept where a score can lie
    low, high = max(found.low, min(lowest, found.value)), min(found.high, max(1.0, found.value))
    return replace(answer, interval=replace(found, low=low, high=high))


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
