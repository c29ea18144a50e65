"""From descriptors and what was said of images to AHEaD: ALIGN, HAL, EXAG, FAITH, DDIV and SDIV."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.declared import check_choices, kept
from culturekit.core.defaults import CONFIDENCE
from culturekit.core.errors import NothingScored, UsageError, argument_error
from culturekit.core.inputs import Numbered, roles_of
from culturekit.core.schemas import DESCRIPTOR_MATCHES, DESCRIPTORS, EXAGGERATIONS, IMAGES, JUDGMENTS, SCORES
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Work
from culturekit.metrics.ahead.descriptor_scores import Aggregate, Reduce, faithfulness
from culturekit.metrics.ahead.matching import DEFAULT_TAU, calibrate_tau, check_tau
from culturekit.metrics.statistics.intervals import Target
from culturekit.scores.ahead_cells import (
    Cells,
    compare_images,
    described_images,
    descriptor_matches,
    excess_of_images,
    pictured,
    variety_of_prompts,
)
from culturekit.scores.family import Family, described, family_stage
from culturekit.scores.image_levels import GroupsGiven, country_groups
from culturekit.scores.inputs import AnyImages, NamedVectors, asked, vector_inputs
from culturekit.scores.ladder import ITEMS_SCHEMA, Climb, climbed
from culturekit.scores.score_rows import Scored

PER_PROMPT = ("ddiv", "sdiv")
"""The scores whose items are prompts; those of the others are images."""


class PhraseVectors(NamedVectors):
    """A folder of vectors, one per phrase, its id the phrase."""

    __slots__ = ()

    def files(self, role: str) -> dict[str, Path]:
        """Name vectors and ids."""
        return vector_inputs({"phrase": self.folder})


@dataclass(frozen=True, slots=True)
class AheadReads:
    """What images show, and what they should show; several tables where models were judged apart."""

    images: AnyImages
    prompts: Annotated[Path, Field(description="Table of their prompts, with the country of each.")]
    descriptors: Annotated[Path, Field(description="Table of what a picture of each prompt should show.")]
    extracted: Annotated[Numbered, Field(description="Judgments of the task extract: what images show; repeatable.")]
    phrases: Annotated[PhraseVectors, Field(description="Folder of vectors, one per phrase, its id the phrase.")]
    stereotypes: Annotated[
        Numbered, Field(description="Judgments of the task stereotype, for EXAG and FAITH; repeatable.")
    ] = Numbered()

    def tables(self, scratch: Path) -> "AheadInput":
        """Read them all."""
        vectors, ids = self.phrases.vectors()
        return AheadInput(
            images=self.images.together(IMAGES),
            prompts=asked(self.prompts, scratch),
            descriptors=read_table(self.descriptors, DESCRIPTORS),
            extracted=self.extracted.together(JUDGMENTS),
            vectors=vectors,
            ids=ids,
            stereotypes=self.stereotypes.together(JUDGMENTS) if self.stereotypes else None,
        )


@dataclass(frozen=True, slots=True)
class AheadOptions:
    """What to score, and how.

    `extractor_dimensions` are those the extractor has; without them the published five and whichever else it names.
    """

    real: Annotated[str | None, Field(description="Model under whose name real images stand among the images.")] = None
    tau: Annotated[
        float | None, Field(ge=-1, le=1, description="Similarity from which descriptors are the same. [0.52]")
    ] = None
    quantile: Annotated[
        float | None, Field(ge=0, le=1, description="Find tau instead, as this quantile over the real images.")
    ] = None
    aggregate: Annotated[
        Aggregate, Field(description="Mean over dimensions, or one share of all descriptors; `people` is in neither.")
    ] = "dimension"
    reduce: Annotated[Reduce, Field(description="Over stereotypes: their mean, or the worst.")] = "mean"
    target: Annotated[
        Target | None,
        Field(description="What intervals speak about: these prompts, or others like them. [others, if 20 or more]"),
    ] = None
    scheme: Annotated[str, Field(description="Scheme that groups countries, shipped or of --groups.")] = "cultivate"
    extractor_dimensions: tuple[str, ...] | None = None
    groups: GroupsGiven = None
    encoder: str = ""
    confidence: float = CONFIDENCE
    benchmark: str = "cultivate"

    def __post_init__(self) -> None:
        """Refuse two thresholds."""
        if self.tau is not None and self.quantile is not None:
            raise UsageError("--tau states the threshold and --quantile finds it", hint="Give one of the two.")

    @property
    def threshold(self) -> float:
        """Tau; it belongs to the encoder."""
        return DEFAULT_TAU if self.tau is None else self.tau


def ahead(given: AheadReads, options: AheadOptions, *, like: Path | None = None, name: str = "scores") -> Stage:
    """Score images against cultural descriptors.

    Alignment, hallucination, exaggeration, faithfulness and diversity.
    """
    known = replace(
        options, groups=country_groups(options.scheme, options.groups), encoder=options.encoder or given.phrases.encoder
    )
    if like is not None:  # the threshold of scores of the same images, which was found when these were made
        known = replace(known, tau=None, quantile=None)

    def score(work: Work) -> Scored:
        try:
            how = known if like is None else replace(known, tau=how_scored(like)[0])
            answer = score_ahead(given.tables(work.scratch), options=how)
        except NothingScored:
            write_table(work.out, DESCRIPTOR_MATCHES, pl.DataFrame(schema=DESCRIPTOR_MATCHES.schema))  # is read later
            raise
        write_table(work.out, DESCRIPTOR_MATCHES, answer.descriptors)
        if answer.exaggerations.height:
            write_table(work.out, EXAGGERATIONS, answer.exaggerations)
        return answer.scored

    inputs = roles_of(given) if like is None else {**roles_of(given), "like": like}
    tau = known.threshold if like is None else None
    return family_stage("ahead", inputs, {**kept(known), "tau": tau}, score, version=4, name=name)


def how_scored(scores: Path) -> tuple[float, Aggregate]:
    """Read the threshold and the aggregate that scores were made with."""
    params = read_table(scores, SCORES).filter(metric="align")["params"]
    if params.is_empty():
        raise NothingScored("no image has an ALIGN, so no threshold is known", where=str(scores))
    about = orjson.loads(params[0])
    return float(about["tau"]), about["aggregate"]


AHEAD = Family(
    ahead,
    metrics=described("align ddiv empty exag faith hal sdiv"),
    example="--images images/images.parquet --prompts prompts/prompts.parquet --descriptors "
    "descriptors/descriptors.parquet --extracted judgments/judgments.parquet --phrases phrases --out scores",
)


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
    check_ahead(options, has_stereotypes=tables.stereotypes is not None)
    left_out: Counter[str] = Counter()
    images = pictured(tables.images, tables.prompts, left_out)
    found = described_images(
        images, tables.descriptors, tables.extracted, has=options.extractor_dimensions, left_out=left_out
    )
    cells = compare_images(found, tables.vectors, tables.ids)
    tau = options.threshold if options.quantile is None else tau_of_real(cells, found.images, options)
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
    groups = country_groups(options.scheme, options.groups)
    climb = Climb(params, PER_PROMPT, groups, options.scheme, options.benchmark, options.confidence, options.target)
    return AheadScores(climbed(items, climb, left_out), descriptor_matches(cells, tau), exaggerations, tau)


def check_ahead(options: AheadOptions, *, has_stereotypes: bool) -> None:
    """Refuse options that break their rules, before any work is done."""
    check_tau(options.threshold)
    check_choices(options)
    reasons = {"stereotypes": has_stereotypes, "quantile": options.quantile is not None}
    wants = [name for name, wanted in reasons.items() if wanted]
    if wants and options.real is None:
        raise argument_error("real", f"the model whose images are real, because {wants[0]} compares with them", None)


def tau_of_real(cells: Cells, images: pl.DataFrame, options: AheadOptions) -> float:
    """Find the threshold from the real images."""
    best = cells.best_of(images.filter(model=options.real))
    if len(best) == 0:
        raise NothingScored(
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
