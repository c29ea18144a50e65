"""From descriptors and what was said of images to AHEaD: ALIGN, HAL, EXAG, FAITH, DDIV and SDIV."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.errors import UsageError
from culturekit.metrics.ahead.composite import Reduce, faithfulness
from culturekit.metrics.ahead.descriptor_scores import AGGREGATES, Aggregate
from culturekit.metrics.ahead.dimensions import check_tau
from culturekit.metrics.ahead.thresholds import DEFAULT_TAU, calibrate_tau
from culturekit.metrics.arguments import argument_error, check_choice
from culturekit.metrics.scoring.ahead_cells import Cells, compare_images
from culturekit.metrics.scoring.ahead_descriptors import descriptor_matches, variety_of_prompts
from culturekit.metrics.scoring.ahead_exaggeration import excess_of_images
from culturekit.metrics.scoring.ahead_tables import described, pictured
from culturekit.metrics.scoring.ladder_tables import ITEMS_SCHEMA, Climb, climbed
from culturekit.metrics.scoring.scored import Scored
from culturekit.metrics.statistics.intervals import Target
from culturekit.records.schemas import EXAGGERATIONS

__all__ = ["AheadInput", "AheadOptions", "AheadScores", "score_ahead"]

PER_PROMPT = ("ddiv", "sdiv")
"""The scores whose items are prompts; those of the others are images."""


@dataclass(frozen=True, slots=True)
class AheadOptions:
    """What to score, and how.

    Attributes:
        tau: from which similarity on two descriptors count as the same; it belongs to the encoder.
        quantile: finds tau instead: this quantile of the best matches of the real images.
        aggregate: the mean over dimensions, or one share of all descriptors.
        reduce: over stereotype candidates, their mean or the worst.
        real: the model under whose name real images stand among the images.
        extractor_dimensions: those the extractor has; without it the published five and whichever else it names.
        groups: country -> group, and the name of that scheme.
        scheme: the name of `groups`.
        encoder: what made the vectors, as it stands in `params`.
        confidence: of the intervals.
        target: what the intervals speak about: `these` prompts, or the `population` they are drawn from; None
            takes the population where each model has at least 20 prompts.
        benchmark: the name under which the scores stand.
    """

    tau: float = DEFAULT_TAU
    quantile: float | None = None
    aggregate: Aggregate = "dimension"
    reduce: Reduce = "mean"
    real: str | None = None
    extractor_dimensions: tuple[str, ...] | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    scheme: str = ""
    encoder: str = ""
    confidence: float = CONFIDENCE
    target: Target | None = None
    benchmark: str = "cultivate"


@dataclass(frozen=True, slots=True)
class AheadInput:
    """The tables that AHEaD is computed from, and the vectors of phrases.

    Attributes:
        images: conforms to IMAGES.
        prompts: conforms to PROMPTS: the country of each image is its prompt's.
        descriptors: conforms to DESCRIPTORS: what a picture of each prompt should show.
        extracted: conforms to JUDGMENTS, task `extract`: what was said of the images.
        vectors: float, (n, dim): one per phrase.
        ids: the phrases of the vectors.
        stereotypes: conforms to JUDGMENTS, task `stereotype`; without it neither EXAG nor FAITH is scored.
    """

    images: pl.DataFrame
    prompts: pl.DataFrame
    descriptors: pl.DataFrame
    extracted: pl.DataFrame
    vectors: NDArray[np.floating]
    ids: list[str]
    stereotypes: pl.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class AheadScores:
    """The scores with their values, and what stands behind them descriptor by descriptor.

    Attributes:
        scored: scores, the values they are means of, and what was left out.
        descriptors: conforms to DESCRIPTOR_MATCHES.
        exaggerations: conforms to EXAGGERATIONS; empty where no stereotypes were scored.
        tau: the threshold used.
    """

    scored: Scored
    descriptors: pl.DataFrame
    exaggerations: pl.DataFrame
    tau: float


def score_ahead(tables: AheadInput, *, options: AheadOptions) -> AheadScores:
    """Score every model on every country, group of countries, and on all.

    Each step of image, prompt, country, group takes an unweighted mean; see `rungs` for the intervals. An image
    that was not described, or whose extraction failed, is left out and counted. `empty` is the share of
    dimensions with references in which nothing was said: such a dimension counts 0 in ALIGN and in HAL.

    Raises:
        UsageError: a table does not conform, an option breaks its rule, or a phrase has no vector.
    """
    check_options(options, has_stereotypes=tables.stereotypes is not None)
    left_out: Counter[str] = Counter()
    images = pictured(tables.images, tables.prompts, left_out)
    found = described(images, tables.descriptors, tables.extracted, has=options.extractor_dimensions, left_out=left_out)
    cells = compare_images(found, tables.vectors, tables.ids)
    tau = options.tau if options.quantile is None else tau_of_real(cells, found.images, options)
    per_image = image_scores(cells.counted(tau), options.aggregate)
    params = params_by_metric(tau, found.judge, options)
    exaggerations = pl.DataFrame(schema=EXAGGERATIONS.schema)
    if tables.stereotypes is not None:
        real = options.real or ""
        excess = excess_of_images(images, tables.stereotypes, real=real, reduce=options.reduce, left_out=left_out)
        per_image, exaggerations = with_faith(per_image, excess.per_image), excess.per_candidate
        params["exag"] = {"reduce": options.reduce, "scorer": excess.scorer}
        params["faith"] = {**params["align"], **params["exag"]}
    countries = tables.prompts.select("prompt_id", "country")
    items = pl.concat([image_items(per_image, images), prompt_items(variety_of_prompts(cells, tau), countries)])
    climb = Climb(
        params, PER_PROMPT, options.groups, options.scheme, options.benchmark, options.confidence, options.target
    )
    return AheadScores(climbed(items, climb, left_out), descriptor_matches(cells, tau), exaggerations, tau)


def check_options(options: AheadOptions, *, has_stereotypes: bool) -> None:
    """Refuse options that break their rules, before any work is done."""
    check_tau(options.tau)
    check_choice("aggregate", options.aggregate, AGGREGATES)
    check_choice("reduce", options.reduce, ("mean", "max"))
    check_choice("target", options.target or "these", ("these", "population"))
    reasons = {"stereotypes": has_stereotypes, "quantile": options.quantile is not None}
    wants = [name for name, wanted in reasons.items() if wanted]
    if wants and options.real is None:
        raise argument_error("real", f"the model whose images are real, because {wants[0]} compares with them", None)


def tau_of_real(cells: Cells, images: pl.DataFrame, options: AheadOptions) -> float:
    """Find the threshold from the real images."""
    best = cells.best_of(images.filter(model=options.real))
    if len(best) == 0:
        raise UsageError(
            f"tau is a quantile over real images, and no image of the model {options.real!r} was described",
            found=f"models {', '.join(images['model'].unique().sort())}",
        )
    return calibrate_tau(best, quantile=0.75 if options.quantile is None else options.quantile)


def params_by_metric(tau: float, extractor: str, options: AheadOptions) -> dict[str, dict[str, object]]:
    """Say how each score is computed."""
    matched: dict[str, object] = {"tau": tau, "extractor": extractor}
    if options.encoder:
        matched["encoder"] = options.encoder
    averaged = {**matched, "aggregate": options.aggregate}
    return {"align": averaged, "hal": averaged, "ddiv": matched, "sdiv": matched, "empty": {"extractor": extractor}}


def image_scores(counted: pl.DataFrame, aggregate: Aggregate) -> pl.DataFrame:
    """Give ALIGN, HAL and the share of empty dimensions of each image."""
    covered, wrong, n_ref, n_pred = map(pl.col, ("covered", "wrong", "n_ref", "n_pred"))
    if aggregate == "dimension":
        align, hal = (covered / n_ref).mean(), (wrong / pl.max_horizontal(n_pred, 1)).mean()
    else:
        align, hal = covered.sum() / n_ref.sum(), wrong.sum() / pl.max_horizontal(n_pred.sum(), 1)
    return counted.group_by("image_id", maintain_order=True).agg(align=align, hal=hal, empty=(n_pred == 0).mean())


def with_faith(per_image: pl.DataFrame, exag: pl.DataFrame) -> pl.DataFrame:
    """Add EXAG and FAITH; an image that lacks one of the three scores has no FAITH."""
    joined = per_image.join(exag, on="image_id", how="full", coalesce=True)
    parts = [joined[name].fill_null(np.nan).to_numpy() for name in ("align", "hal", "exag")]
    return joined.with_columns(faith=pl.Series(np.asarray(faithfulness(*parts))).fill_nan(None))


def image_items(per_image: pl.DataFrame, images: pl.DataFrame) -> pl.DataFrame:
    """Give the scores of images one below the other, where there are any."""
    joined = per_image.join(images, on="image_id", how="inner")
    return long_form(joined, per_image.drop("image_id").columns, item="image_id")


def prompt_items(variety: pl.DataFrame, countries: pl.DataFrame) -> pl.DataFrame:
    """Give the scores of prompts one below the other, where there are any."""
    joined = variety.join(countries, on="prompt_id", how="inner").with_columns(repeat=pl.lit(None, pl.UInt16))
    return long_form(joined, list(PER_PROMPT), item="prompt_id")


def long_form(frame: pl.DataFrame, metrics: list[str], *, item: str) -> pl.DataFrame:
    """Write one row per metric and item; a score that is missing has no row."""
    named = frame.with_columns(item=pl.col(item))
    index = ["model", "prompt_id", "country", "item", "repeat"]
    rows = named.unpivot(metrics, index=index, variable_name="metric", value_name="value")
    return rows.filter(pl.col("value").is_finite()).select(list(ITEMS_SCHEMA))
