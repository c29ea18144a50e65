"""AHEaD from descriptors and what was extracted from images: ALIGN, HAL, EXAG, FAITH, DDIV and SDIV."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.choices import CONFIDENCE
from culturekit.core.declared import check_choices
from culturekit.core.errors import NothingScored, UsageError, argument_error
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import DESCRIPTOR_MATCHES, DESCRIPTORS, EXAGGERATIONS, IMAGES, JUDGMENTS, SCORES
from culturekit.core.stage import Stage, Work
from culturekit.core.tables import read_table, write_table
from culturekit.metrics.ahead.descriptor_scores import Aggregate, Reduce, faithfulness
from culturekit.metrics.ahead.matching import DEFAULT_TAU, calibrate_tau, check_tau
from culturekit.metrics.statistics.intervals import (
    FEWEST_PROMPTS,
    Interval,
    Target,
    half_width,
    mean_of_means,
    mean_of_these,
    simple_mean,
)
from culturekit.recipes.cultivate.cells import (
    Cells,
    compare_images,
    described_images,
    descriptor_matches,
    excess_of_images,
    pictured,
    variety_of_prompts,
)
from culturekit.scores.catalog import describe
from culturekit.scores.family import Row, Scored, scored, scores, statistic_row
from culturekit.scores.image_levels import GroupsGiven, country_groups
from culturekit.scores.inputs import AnyImages, NamedVectors, asked, vector_inputs

_PAPER = "Culture in Action: Evaluating Text-to-Image Models through Social Activities (CULTIVate), section 3.2"

_LADDER = (
    "Images are averaged per prompt, prompts per country, countries per group or over all, without weights. With "
    "params.target=population the interval is a t interval over prompts, stratified by country, and speaks about other "
    "prompts of these countries; a score of fewer than 20 prompts has none. With params.target=these it holds the "
    "prompts fixed and speaks about other images of them."
)

_MATCHING = (
    "It is only as good as three models: the one that wrote the references, the one that described the images "
    "(params.extractor), and the one that made the vectors. All three know some cultures better than others.",
    "tau belongs to the encoder of the phrases. The published 0.29, 0.39 and 0.52 (the default) are the quartiles "
    "found with all-MiniLM-L6-v2; for another encoder find it from real images (calibrate_tau, or --quantile).",
    "A dimension in which nothing was said of an image counts 0. The metric `empty` says how often that was. One "
    "without an answer is missing: the image is scored by the others.",
    "References in `people`, which the published extractor does not have, are in neither aggregate: not in the mean "
    "over dimensions and not in the pooled share. They are counted in the manifest. Where another dimension stands on "
    "one side only nothing is scored; `setting` is a name of background.",
)

_DESCRIPTORS = "descriptors: prompt_id, dimension, token"
_EXTRACTED = "judgments, task extract: image_id, item (the token), dimension, outcome"
_VECTORS = "a folder of vectors: one per phrase, its id the phrase"
_WEIGHTS = "that of the encoder of the phrases (all-MiniLM-L6-v2: Apache-2.0)"

ALIGN = describe(
    "align", "Alignment with cultural descriptors",
    "mean over dimensions d of the share of references r in R_d with max over predictions p in P_d of "
    "cos(p, r) >= tau; aggregate=pooled: one share over all dimensions",
    paper=f"{_PAPER}, equation 1", inputs=(_DESCRIPTORS, _EXTRACTED, _VECTORS),
    pitfalls=(
        *_MATCHING,
        "References list variants that exclude each other, so that no single image can reach 1.",
        _LADDER,
    ),
    direction="higher", licence=_WEIGHTS,
)  # fmt: skip

HAL = describe(
    "hal", "Hallucination against cultural descriptors",
    "mean over dimensions d of the share of predictions p in P_d with max over references r in R_d of "
    "cos(p, r) < tau, 0 where P_d is empty; aggregate=pooled: one share over all dimensions",
    paper=f"{_PAPER}, equation 2", inputs=ALIGN.inputs,
    pitfalls=(
        *_MATCHING,
        "An image of which nothing was said has no hallucination: read it beside `align` and `empty`.",
        "A true detail that no reference mentions counts as hallucinated.",
        _LADDER,
    ),
    direction="lower", licence=_WEIGHTS,
)  # fmt: skip

EMPTY = describe(
    "empty", "Dimensions in which nothing was said",
    "share of the dimensions with references in which the extractor named nothing in the image",
    paper="culturekit; a flag on ALIGN and HAL", inputs=(_DESCRIPTORS, _EXTRACTED),
    pitfalls=(
        "Such dimensions count 0 in ALIGN and 0 in HAL: the more of them, the less HAL means.",
        "Images that were not described, and dimensions on which the extractor failed, are not counted here.",
        _LADDER,
    ),
)  # fmt: skip

EXAG = describe(
    "exag", "Exaggeration of stereotypes",
    "mean (reduce=max: maximum) over stereotype candidates k of the country of max(0, f(I, k) - f_real(k)), "
    "f an image-text score, f_real its mean over real images of the country",
    paper=f"{_PAPER}, equations 3 and 4",
    inputs=(
        "judgments, task stereotype: image_id, item (the candidate), value, of generated and of real images",
        "images: image_id, model, prompt_id",
    ),
    pitfalls=(
        "It has the scale of the image-text score (params.scorer): with VQAScore it lies in [0, 1]; values of two "
        "scorers cannot be compared.",
        "Real images found by a search engine are stereotyped themselves, which hides exaggeration.",
        "An image without a score of every candidate of its country is left out and counted.",
        _LADDER,
    ),
    direction="lower", unit="score", licence="that of the scorer named in params.scorer",
)  # fmt: skip

FAITH = describe(
    "faith", "Cultural faithfulness", "(ALIGN + (1 - HAL) + (1 - EXAG)) / 3, per image", paper=f"{_PAPER}, equation 5",
    inputs=(*ALIGN.inputs, *EXAG.inputs),
    pitfalls=(
        "An image of which nothing was said and that is not stereotypical has 2/3. Read it with its parts and `empty`.",
        "EXAG varies far less than the other two and hardly moves it.",
        *_MATCHING,
        _LADDER,
    ),
    direction="higher", licence=f"{_WEIGHTS}; {EXAG.licence}",
)  # fmt: skip

DDIV = describe(
    "ddiv", "Descriptor diversity",
    "mean over dimensions of -sum of p_j ln p_j / ln|R_d|, p_j = c_j / sum of c, c_j the images of a prompt "
    "that show reference j; 0 where none is shown or |R_d| <= 1",
    paper=f"{_PAPER}, equation 6", inputs=ALIGN.inputs,
    pitfalls=(
        "It grows with the number of images per prompt and with ALIGN: compare models with the same number (10 in the "
        "paper), and read it beside ALIGN.",
        "Its items are prompts with at least two images; others have no value.",
        *_MATCHING,
        _LADDER,
    ),
    direction="higher", licence=_WEIGHTS,
)  # fmt: skip

SDIV = describe(
    "sdiv", "Semantic diversity",
    "mean over dimensions of ALIGN_d of the predictions of all images of a prompt pooled - mean over its "
    "images of ALIGN_d; aggregate=pooled: of ALIGN as one share over all dimensions",
    paper=f"{_PAPER}, equation 7", inputs=ALIGN.inputs,
    pitfalls=(
        "It grows with the number of images per prompt: compare models with the same number (10 in the paper).",
        "It cannot exceed 1 - ALIGN: a model that shows everything in each image has none left to gain.",
        "Its items are prompts with at least two images; others have no value.",
        *_MATCHING,
        _LADDER,
    ),
    direction="higher", licence=_WEIGHTS,
)  # fmt: skip

PER_PROMPT = ("ddiv", "sdiv")  # The scores whose items are prompts; those of the others are images


class PhraseVectors(NamedVectors):
    """A folder of vectors, one per phrase, its id the phrase."""

    __slots__ = ()

    def files(self, role: str) -> dict[str, Path]:
        """Name vectors and ids."""
        return vector_inputs({"phrase": self.folder})


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
        """Reject two thresholds."""
        if self.tau is not None and self.quantile is not None:
            raise UsageError("--tau states the threshold and --quantile finds it", hint="Give one of the two.")

    @property
    def threshold(self) -> float:
        """Tau; it belongs to the encoder."""
        return DEFAULT_TAU if self.tau is None else self.tau


DEFAULTS, NONE = AheadOptions(), Numbered()


def _resolved(*, phrases: PhraseVectors, options: AheadOptions, like: Path | None, **_: object) -> dict[str, object]:
    """Keep groups and encoder in the manifest, not names of files; with `like` no threshold, which is not known yet."""
    groups, encoder = country_groups(options.scheme, options.groups), options.encoder or phrases.encoder
    known = replace(options, groups=groups, encoder=encoder)
    return {"options": known if like is None else replace(known, tau=None, quantile=None)}


def _with_threshold(stage: Stage, given: Mapping[str, Any]) -> Stage:
    """Keep the default threshold in the manifest too."""
    tau = given["options"].threshold if given["like"] is None else None
    # Pooled shares had another SDIV up to version 4.
    version = stage.version + (given["options"].aggregate == "pooled")
    return replace(stage, version=version, options={**stage.options, "tau": tau})


@scores(
    "ahead", ALIGN, DDIV, EMPTY, EXAG, FAITH, HAL, SDIV, version=5, settle=_resolved, amend=_with_threshold,
    example="--images images/images.parquet --prompts prompts/prompts.parquet --descriptors "
    "descriptors/descriptors.parquet --extracted judgments/judgments.parquet --phrases phrases --out scores",
)  # fmt: skip
def ahead(
    work: Work,
    images: AnyImages,
    prompts: Annotated[Path, Field(description="Table of their prompts, with the country of each.")],
    descriptors: Annotated[Path, Field(description="Table of what a picture of each prompt should show.")],
    extracted: Annotated[Numbered, Field(description="Judgments of the task extract: what images show; repeatable.")],
    phrases: Annotated[PhraseVectors, Field(description="Folder of vectors, one per phrase, its id the phrase.")],
    stereotypes: Annotated[
        Numbered, Field(description="Judgments of the task stereotype, for EXAG and FAITH; repeatable.")
    ] = NONE,
    like: Path | None = None,
    *,
    options: AheadOptions = DEFAULTS,
) -> Scored:
    """Score images against cultural descriptors.

    Alignment, hallucination, exaggeration, faithfulness and diversity.
    """
    try:
        how = options if like is None else replace(options, tau=how_scored(like)[0])  # found on the same images
        vectors, ids = phrases.vectors()
        tables = AheadInput(
            images=images.together(IMAGES), prompts=asked(prompts, work.scratch),
            descriptors=read_table(descriptors, DESCRIPTORS), extracted=extracted.together(JUDGMENTS), vectors=vectors,
            ids=ids, stereotypes=stereotypes.together(JUDGMENTS) if stereotypes else None,
        )  # fmt: skip
        answer = score_ahead(tables, options=how)
    except NothingScored:
        write_table(work.out, DESCRIPTOR_MATCHES, pl.DataFrame(schema=DESCRIPTOR_MATCHES.schema))  # is read later
        raise
    write_table(work.out, DESCRIPTOR_MATCHES, answer.descriptors)
    if answer.exaggerations.height:
        write_table(work.out, EXAGGERATIONS, answer.exaggerations)
    return answer.scored


def how_scored(scores: Path) -> tuple[float, Aggregate]:
    """Read the threshold and the aggregate that scores were made with."""
    params = read_table(scores, SCORES).filter(metric="align")["params"]
    if params.is_empty():
        raise NothingScored("no image has an ALIGN, so no threshold is known", where=str(scores))
    about = orjson.loads(params[0])
    return float(about["tau"]), about["aggregate"]


@dataclass(frozen=True, slots=True)
class AheadInput:
    """The tables that AHEaD is computed from, each as it is declared, and the vectors of phrases."""

    images: pl.DataFrame
    prompts: pl.DataFrame  # the country of each image is its prompt's
    descriptors: pl.DataFrame  # what a picture of each prompt should show
    extracted: pl.DataFrame  # JUDGMENTS, task `extract`: what was said of the images
    vectors: NDArray[np.floating]  # (n, dim): one per phrase
    ids: list[str]  # the phrases
    stereotypes: pl.DataFrame | None = None  # task `stereotype`; without it neither EXAG nor FAITH is scored


class AheadScores(NamedTuple):
    """The scores with their values, what stands behind them descriptor by descriptor, and the threshold used."""

    scored: Scored
    descriptors: pl.DataFrame  # conforms to DESCRIPTOR_MATCHES
    exaggerations: pl.DataFrame  # conforms to EXAGGERATIONS; empty where no stereotypes were scored
    tau: float


def score_ahead(tables: AheadInput, *, options: AheadOptions) -> AheadScores:
    """Score every model on every country, group of countries, and on all.

    Each step of image, prompt, country, group takes an unweighted mean; see `rungs` for the intervals. A dimension
    of an image whose extraction failed is left out and counted; so is an image of which nothing is known. `empty` is
    the share of dimensions in which nothing was said: such a dimension counts 0 in ALIGN and in HAL.

    Raises:
        UsageError: a table does not conform, an option breaks its rule, or a phrase has no vector.
    """
    check_tau(options.threshold)
    check_choices(options)
    compared = "quantile" if tables.stereotypes is None else "stereotypes"
    if options.real is None and not (tables.stereotypes is None and options.quantile is None):
        raise argument_error("real", f"the model whose images are real, because {compared} compares with them", None)
    left_out: Counter[str] = Counter()
    images = pictured(tables.images, tables.prompts, left_out)
    has = options.extractor_dimensions
    found = described_images(images, tables.descriptors, tables.extracted, has=has, left_out=left_out)
    cells = compare_images(found, tables.vectors, tables.ids)
    tau = options.threshold if options.quantile is None else _tau_of_real(cells, found.images, options)
    per_image, exaggerations = (
        image_scores(cells.counted(tau), options.aggregate),
        pl.DataFrame(schema=EXAGGERATIONS.schema),
    )
    extractor: dict[str, object] = {"extractor": found.judge}
    matched = {"tau": tau, **extractor, **({"encoder": options.encoder} if options.encoder else {})}
    averaged = {**matched, "aggregate": options.aggregate}
    params: dict[str, dict[str, object]] = {
        "align": averaged, "hal": averaged, "ddiv": matched, "sdiv": matched, "empty": extractor,
    }  # fmt: skip
    if tables.stereotypes is not None:
        real = options.real or ""
        excess = excess_of_images(images, tables.stereotypes, real=real, reduce=options.reduce, left_out=left_out)
        per_image, exaggerations = _with_faith(per_image, excess.per_image), excess.per_candidate
        params["exag"] = {"reduce": options.reduce, "scorer": excess.scorer}
        params["faith"] = {**params["align"], **params["exag"]}
    countries = tables.prompts.select("prompt_id", "country", repeat=pl.lit(None, pl.UInt16))
    of_prompts = variety_of_prompts(cells, tau, options.aggregate).join(countries, on="prompt_id")
    metrics = per_image.drop("image_id").columns
    items = pl.concat([_long_form(per_image.join(images, on="image_id"), metrics, item="image_id"),
                       _long_form(of_prompts, PER_PROMPT, item="prompt_id")])  # fmt: skip
    return AheadScores(_climbed(items, params, options, left_out), descriptor_matches(cells, tau), exaggerations, tau)


def _tau_of_real(cells: Cells, images: pl.DataFrame, options: AheadOptions) -> float:
    """Find the threshold from the real images."""
    best = cells.best_of(images.filter(model=options.real))
    if len(best) == 0:
        raise NothingScored(
            f"tau is a quantile over real images, and no image of the model {options.real!r} was described",
            found=f"models {', '.join(images['model'].unique().sort())}",
        )
    return calibrate_tau(best, quantile=0.75 if options.quantile is None else options.quantile)


def image_scores(counted: pl.DataFrame, aggregate: Aggregate) -> pl.DataFrame:
    """Give ALIGN, HAL and the share of empty dimensions of each image."""
    covered, wrong, n_ref, n_pred = map(pl.col, ("covered", "wrong", "n_ref", "n_pred"))
    if aggregate == "dimension":
        align, hal = (covered / n_ref).mean(), (wrong / pl.max_horizontal(n_pred, 1)).mean()
    else:
        align, hal = covered.sum() / n_ref.sum(), wrong.sum() / pl.max_horizontal(n_pred.sum(), 1)
    return counted.group_by("image_id", maintain_order=True).agg(align=align, hal=hal, empty=(n_pred == 0).mean())


def _with_faith(per_image: pl.DataFrame, exag: pl.DataFrame) -> pl.DataFrame:
    """Add EXAG and FAITH; an image that lacks one of the three scores has no FAITH."""
    joined = per_image.join(exag, on="image_id", how="full", coalesce=True)
    parts = [joined[name].fill_null(np.nan).to_numpy() for name in ("align", "hal", "exag")]
    return joined.with_columns(faith=pl.Series(np.asarray(faithfulness(*parts))).fill_nan(None))


def _long_form(frame: pl.DataFrame, metrics: Sequence[str], *, item: str) -> pl.DataFrame:
    """Write one row per metric and item; a score that is missing has no row."""
    index = ["model", "prompt_id", "country", "item", "repeat"]
    rows = frame.with_columns(item=item).unpivot(list(metrics), index=index, variable_name="metric")
    return rows.filter(pl.col("value").is_finite())


def rungs(
    values: pl.DataFrame, groups: Mapping[str, str], *, target: Target, confidence: float, prompt_items: bool
) -> Iterator[tuple[str | None, str | None, Interval]]:
    """Climb from items to prompts, countries, groups and all, taking unweighted means at each step.

    With the target `population` the interval is a t interval over prompts, stratified by country: it speaks about
    other prompts of these countries. It is unknown where there are fewer than 20 prompts, or a country has
    one. With `these` the prompts are held fixed and it is a t interval over the images of each; it is unknown
    where a prompt has one image, or where the items are prompts themselves.

    Args:
        values: prompt_id, country, item, value: one row per item, no value NaN. Where no country is stated the
            prompts are one stratum; where some state one, the others are left out.
        groups: country -> group; a country without a group is in none.
        target: what the intervals speak about.
        confidence: of the intervals.
        prompt_items: whether items are prompts and not images.

    Yields:
        Country, group and score, which counts items: all (neither), then each country, then each group, in
        alphabetical order.
    """
    ordered = values.sort("country", "prompt_id", "item").partition_by("country", "prompt_id", maintain_order=True)
    strata: dict[str, list[NDArray[np.float64]]] = {}
    for prompt in ordered:
        strata.setdefault(prompt["country"][0] or "", []).append(prompt["value"].to_numpy())
    if not strata:
        return
    average = partial(_mean_over, target=target, confidence=confidence, prompt_items=prompt_items)
    stated = {country: prompts for country, prompts in strata.items() if country}
    yield None, None, average(list((stated or strata).values()))
    for country, prompts in stated.items():
        yield country, None, average([prompts])
    for group in sorted({groups[country] for country in stated if country in groups}):
        yield None, group, average([prompts for country, prompts in stated.items() if groups.get(country) == group])


def _mean_over(
    countries: Sequence[Sequence[NDArray[np.float64]]], *, target: Target, confidence: float, prompt_items: bool
) -> Interval:
    """Average the values of images over prompts, then over countries, with the interval where the numbers allow it."""
    if target == "population":
        parts = [simple_mean(np.array([simple_mean(prompt).value for prompt in prompts])) for prompts in countries]
        known = sum(map(len, countries)) >= FEWEST_PROMPTS
    else:
        parts, known = [mean_of_these(prompts) for prompts in countries], not prompt_items
    mean = mean_of_means(parts)
    margin = half_width(mean, confidence=confidence) if known else math.nan
    items = sum(len(prompt) for prompts in countries for prompt in prompts)
    return Interval(mean.value, mean.value - margin, mean.value + margin, items, target)


def _climbed(
    items: pl.DataFrame, params: Mapping[str, Mapping[str, object]], options: AheadOptions, left_out: Counter[str]
) -> Scored:
    """Average items up the ladder, metric by metric and model by model, and count what is left out.

    Values stand under the score of their country, from which groups and all are means; without countries, under
    the score of all. Where some prompts state a country, those that do not are left out.
    """
    groups = country_groups(options.scheme, options.groups)
    has_country, of_image = pl.col("country").is_not_null(), ~pl.col("metric").is_in(PER_PROMPT)
    placed = items.filter(has_country.any().over("metric", "model") <= has_country)
    lost = items.join(placed, on=["metric", "model", "item"], how="anti").filter(of_image)
    left_out["images of prompts without a country"] += lost["item"].n_unique()
    apart = placed.filter(has_country & ~pl.col("country").is_in(list(groups)), of_image)
    if apart.height and groups:
        names = ", ".join(apart["country"].unique().sort())
        reason = f"images of countries in no group of {options.scheme}, which stand in no group's score: {names}"
        left_out[reason] += apart["item"].n_unique()
    # Decided once for all scores: params that differ would keep them from being compared.
    prompts = placed.group_by("model").agg(pl.col("prompt_id").n_unique())["prompt_id"].to_list()
    target = options.target or ("population" if prompts and min(prompts) >= FEWEST_PROMPTS else "these")
    rows = list[Row]()
    for part in placed.sort("metric", "model").partition_by("metric", "model", maintain_order=True):
        metric, model = part["metric"][0], part["model"][0]
        climbed = rungs(part, groups, target=target, confidence=options.confidence, prompt_items=metric in PER_PROMPT)
        for country, group, answer in climbed:
            about = {**params[metric], **({"scheme": options.scheme} if group else {}), "target": answer.target}
            rows.append(statistic_row(metric, model=model, benchmark=options.benchmark, answer=answer, params=about,
                                      concept=None, country=country, group=group))  # fmt: skip
    named = pl.DataFrame(rows, schema=SCORES.schema, orient="row").filter(pl.col("group").is_null())
    keys = ["metric", "model", "country"]
    values = placed.join(named.select(*keys, "benchmark", "concept", "group", "params"), on=keys, nulls_equal=True)
    return scored(rows, values, left_out=left_out)
