"""From vectors of images and texts to CLIPScore, of prompts, regions and objects."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.core.declared import Typed, check_choices
from culturekit.core.errors import NothingScored, UsageError, argument_error
from culturekit.core.schemas import YES_BY_SCORE
from culturekit.core.stage import Work
from culturekit.core.tables import write_table
from culturekit.metrics.realism.clip_scores import (
    PRESENCE_THRESHOLDS,
    clip_score,
    consistency_interval,
    nearest_own,
    objects_present,
    yes_by_score,
)
from culturekit.metrics.statistics.intervals import Target
from culturekit.scores.answers import answers_in, bucket_row, careful_answers, of_criterion, yes_or_no
from culturekit.scores.catalog import describe
from culturekit.scores.family import Row, Scored, scored, scores, statistic_row
from culturekit.scores.image_levels import MeanOptions, Rows, cells_of, mean_rows, placed, target_of
from culturekit.scores.inputs import LabelledVectors, VectorFolder, images_with_prompts, one_identity

# What texts are of -> the metric, the column of images that holds the id of each one's text, and the scale
TEXTS: Mapping[str, tuple[str, str, float]] = {
    "prompt": ("clip_score", "prompt_id", 100.0),
    "region": ("region_clip_score", "group", 1.0),
    "country": ("region_clip_score", "country", 1.0),
    "object": ("object_clip_score", "concept", 1.0),
}

PLACES = ("region", "country")  # Texts of which the nearest one says where an image seems to be from


def thresholds_of(texts: Sequence[str]) -> dict[str, float]:
    """Read thresholds as they are typed: `0.21` for every model, `MODEL=0.25` for one."""
    found: dict[str, float] = {}
    for text in texts:
        model, _, number = text.rpartition("=")
        if model in found:
            raise argument_error("threshold", "given once for a model, and once for all others", list(texts))
        try:
            found[model] = float(number)
        except ValueError as error:
            raise argument_error("threshold", "a cosine such as 0.21, or MODEL=0.25", text) from error
        if not -1 <= found[model] <= 1:
            raise argument_error("threshold", "a cosine, from -1 to 1", text)
    return found


_INCLUSION = "Hall et al. 2024, Towards Geographic Inclusion in the Evaluation of Text-to-Image Models"

_DIG_IN = (
    "Hall et al. 2023, DIG In: Evaluating Disparities in Image Generations with Indicators for Geographic Diversity"
)

_HESSEL = "Hessel et al. 2021, CLIPScore: A Reference-free Evaluation Metric for Image Captioning"

_TEXT_INPUTS = (
    "two folders of vectors of one image-text encoder: images, and texts",
    "images: image_id, model, prompt_id, concept, country",
)

_CLIP_INTERVAL = (
    "The interval is t over prompts under the target population, which needs 20 prompts, and over images within "
    "prompts under these.",
)

# Describe a metric on cosines of images and texts
_of_texts = partial(
    describe, inputs=_TEXT_INPUTS, direction="higher", licence="that of the encoder named in params.encoder (CLIP: MIT)"
)

CLIP_SCORE = _of_texts(
    "clip_score",
    "CLIPScore of prompts",
    "mean over images of max(100 cos(image, prompt), 0), each pair clamped by itself",
    paper=_HESSEL,
    pitfalls=(
        "The paper's scale is 2.5, most code's 100; params.scale says which. Values of two encoders cannot be "
        "compared.",
        "Encoders saw English captions of Western pictures, and read names of places as stereotypes of them.",
        *_CLIP_INTERVAL,
    ),
    high=100.0,
    unit="points",
)

REGION_CLIP_SCORE = _of_texts(
    "region_clip_score",
    "Region-CLIPScore",
    "mean over images of max(cos(image, name of the region or country), 0)",
    paper=_INCLUSION,
    pitfalls=(
        "It follows people's view of a region poorly, worst for South-East Asia, and favours stereotypes over real "
        "photographs: the paper advises against it. More of it is not better.",
        *_CLIP_INTERVAL,
    ),
    direction="neither",
    unit="cosine",
)

REGION_RECOGNISED = _of_texts(
    "region_recognised",
    "Regions recognised",
    "share of images whose cosine with the name of their own region or country is above those with all others "
    "(params.among)",
    paper=_INCLUSION,
    pitfalls=(
        "An encoder recognises clichés more readily than everyday images: hold it against people who live there.",
        "It falls with the number of regions to choose from. The interval is that of object_presence.",
    ),
)

OBJECT_CLIP_SCORE = _of_texts(
    "object_clip_score",
    "Object-CLIPScore",
    "mean over images of max(cos(image, name of the object), 0)",
    paper=_INCLUSION,
    pitfalls=(
        "Above a threshold it says no more: an image with a higher score shows the object no better. Read "
        "object_presence.",
        *_CLIP_INTERVAL,
    ),
    unit="cosine",
)

OBJECT_PRESENCE = _of_texts(
    "object_presence",
    "Objects shown",
    "share of images with cos(image, name of the object) >= params.threshold",
    paper=_INCLUSION,
    pitfalls=(
        "The threshold belongs to the encoder and the kind of images: 0.21 for real images of GeoDE and for DM, 0.25 "
        "for LDM 2.1. For others find it from answers of people: yes_by_score.parquet.",
        "The interval is Wilson's at the effective number of images; otherwise as that of object_clip_score.",
    ),
)

OBJECT_CONSISTENCY = _of_texts(
    "object_consistency",
    "Consistency of objects",
    "mean over objects of the 10th percentile of cos(image, name of the object)",
    paper=_DIG_IN,
    pitfalls=(
        "It asks about the worst images, so a few failures per object decide it.",
        "The interval takes images as independent and speaks about other images of these objects; objects with fewer "
        "than 50 images leave it open.",
        "Objects differ in what cosine they can reach: compare sets with the same objects.",
    ),
    unit="cosine",
)


@dataclass(frozen=True, slots=True)
class ClipOptions:
    """What to score, and how.

    `thresholds` are by model, "" being every other one; the encoder is what made the vectors.
    """

    texts: Annotated[
        Literal["prompt", "region", "country", "object"],
        Field(description="What the texts are of; their ids are prompt ids, regions, countries or objects (concepts)."),
        Typed("of"),
    ] = "prompt"
    thresholds: Annotated[
        Mapping[str, float],
        Field(description="Cosine from which an object counts as shown, or MODEL=0.25 for one model. [0.21]"),
        Typed("threshold", gather=thresholds_of, needs="of=object"),
    ] = field(default_factory=lambda: {"": PRESENCE_THRESHOLDS["geode"]})
    percentile: Annotated[
        float, Field(ge=0, le=100, description="Of the consistency of objects."), Typed(needs="of=object")
    ] = 10.0
    criterion: Annotated[
        str, Field(description="Of the annotations: the question asked."), Typed(needs="annotations")
    ] = "object"
    width: Annotated[float, Field(ge=0.0001, description="Of a bucket of scores."), Typed(needs="annotations")] = 0.01
    encoder: Mapping[str, Any] = field(default_factory=dict)
    means: MeanOptions = MeanOptions(benchmark="clip")


def _identity(vectors: VectorFolder, texts: VectorFolder) -> dict[str, Any]:
    return one_identity(vectors.folder, texts.folder)


def _settled(vectors: VectorFolder, texts: VectorFolder, options: ClipOptions, **_: object) -> dict[str, object]:
    """Say who embeds; a recipe does before there are vectors."""
    encoder = options.encoder or _identity(vectors, texts)
    return {"options": replace(options, encoder=encoder, means=options.means.known())}


@scores(
    "clip", CLIP_SCORE, OBJECT_CLIP_SCORE, OBJECT_CONSISTENCY, OBJECT_PRESENCE, REGION_CLIP_SCORE, REGION_RECOGNISED,
    version=3, settle=_settled,
    example="--vectors vectors --texts prompt-vectors --images images/images.parquet --out scores",
)  # fmt: skip
def clip(
    work: Work,
    vectors: Annotated[VectorFolder, Field(description="Folder of vectors of images, ids their image ids.")],
    texts: Annotated[VectorFolder, Field(description="Folder of vectors of texts, by the same encoder.")],
    images: Annotated[Path, Field(description="Table of the images.")],
    prompts: Annotated[
        Path | None,
        Field(description="Prompts of the images, where their table lacks country or object."),
        Typed(after="of"),
    ] = None,
    annotations: Annotated[
        Path | None,
        Field(description="Answers of people about the images; adds how often they said yes, by score."),
        Typed(after="percentile"),
    ] = None,
    *,
    options: ClipOptions = ClipOptions(),
) -> Scored:
    """Score images against their prompts, regions or objects.

    CLIPScore, objects shown, consistency.
    """
    table = images_with_prompts(images, prompts, work.scratch)
    people = None if annotations is None else answers_in(work, annotations, options.criterion)
    identified = replace(options, encoder=_identity(vectors, texts))
    answer = score_clip(vectors.vectors(), texts.vectors(), table, people, options=identified)
    if people is not None:
        write_table(work.out, YES_BY_SCORE, answer.curve)
    return answer.scored


@dataclass(frozen=True, slots=True)
class ClipScores:
    """Scores, and how often people said yes by score (YES_BY_SCORE; empty without annotations)."""

    scored: Scored
    curve: pl.DataFrame


def score_clip(
    vectors: LabelledVectors,
    texts: LabelledVectors,
    table: pl.DataFrame,
    annotations: pl.DataFrame | None = None,
    *,
    options: ClipOptions,
) -> ClipScores:
    """Score every image against its text, per model, all together and at each level.

    Texts of objects add the share of images whose object counts as shown, and the consistency of objects: the mean
    over objects of a low percentile. Texts of regions or countries add the share of images nearest to their own.
    """
    check_choices(options)
    left_out: Counter[str] = Counter()
    images = scored_images(vectors, texts, table, options, left_out)
    metric, _, scale = TEXTS[options.texts]
    target = target_of(images, options.means)
    params = {"encoder": dict(options.encoder), "scale": scale, "texts": options.texts}
    scores, values = mean_rows(images, metric, options.means, params, target=target)
    if options.texts == "object":
        for rows, value_table in object_rows(images, options, params, target):
            scores += rows
            values += value_table
    if options.texts in PLACES and len(texts.ids) > 1:
        nearest = images.with_columns(value=pl.col("nearest").cast(pl.Float64))
        stated = {**params, "among": sorted(texts.ids)}
        rows, value_table = mean_rows(nearest, "region_recognised", options.means, stated, target=target, share=True)
        scores, values = scores + rows, values + value_table
    curve = pl.DataFrame(schema=YES_BY_SCORE.schema)
    if annotations is not None:
        curve = curve_of(images, annotations, metric, options, left_out)
    return ClipScores(scored(scores, values, left_out=left_out), curve)


def scored_images(
    vectors: LabelledVectors, texts: LabelledVectors, table: pl.DataFrame, options: ClipOptions, left_out: Counter[str]
) -> pl.DataFrame:
    """Give the images that have a text, with their score as `value`, and whether no other text is as `nearest`."""
    metric, column, scale = TEXTS[options.texts]
    images = placed(vectors.ids, table, options.means, what="vectors of images", left_out=left_out)
    if len(set(texts.ids)) < len(texts.ids):
        twice = Counter(texts.ids).most_common(1)[0][0]
        raise UsageError("an id stands twice among the texts", found=repr(twice))
    known = pl.DataFrame({"text": range(len(texts.ids)), column: list(texts.ids)}).cast({column: pl.String})
    found = images.join(known, on=column, how="inner", maintain_order="left")
    left_out["images without a text"] += images.height - found.height
    if found.is_empty():
        raise NothingScored(
            f"no image has a text for {metric}",
            expected=f"ids of texts that stand in the column {column} of images",
            found=f"texts such as {texts.ids[0]!r}" if texts.ids else "no texts",
        ).counting(left_out)
    rows, places = np.asarray(vectors.vectors)[found["row"].to_numpy()], found["text"].to_numpy()
    score = clip_score(rows, np.asarray(texts.vectors)[places], scale=scale)
    if options.texts not in PLACES:
        return found.with_columns(value=pl.Series(score))
    nearest = nearest_own(rows, texts.vectors, places)
    return found.with_columns(value=pl.Series(score), nearest=pl.Series(nearest))


def object_rows(images: pl.DataFrame, options: ClipOptions, params: Mapping[str, object], target: Target) -> list[Rows]:
    """Write presence and consistency of objects."""
    models = images["model"].unique().sort().to_list()
    unknown = sorted(set(options.thresholds) - {"", *models})
    if unknown:
        raise argument_error("thresholds", f"of models that are scored, such as {models[0]!r}", unknown[0])
    thresholds = [(model, options.thresholds.get(model, options.thresholds.get(""))) for model in models]
    answers = []
    for model, threshold in thresholds:
        if threshold is None:
            raise argument_error("thresholds", f"given for {model!r}, or for every model", dict(options.thresholds))
        part = images.filter(model=model)
        present = pl.Series(objects_present(part["value"].to_numpy(), threshold=threshold)).cast(pl.Float64)
        stated = {**params, "threshold": threshold}
        shown = part.with_columns(value=present)
        answers.append(mean_rows(shown, "object_presence", options.means, stated, target=target, share=True))
    rows: list[Row] = []
    for scope, cell in cells_of(images, options.means.by):
        if scope.get("concept") is not None:
            # A single object: its percentile is no mean over objects.
            continue
        answer = consistency_interval(
            cell["value"].to_numpy(),
            objects=cell["concept"].to_list(),
            percentile=options.percentile,
            confidence=options.means.confidence,
        )
        stated = {**params, "percentile": options.percentile, "target": "images"}
        stated |= {"scheme": options.means.scheme} if scope.get("group") else {}
        about = {**scope, "benchmark": options.means.benchmark, "metric": "object_consistency"}
        rows.append(statistic_row(**about, answer=answer, params=stated))
    return [*answers, (rows, [])]


def curve_of(
    images: pl.DataFrame, annotations: pl.DataFrame, metric: str, options: ClipOptions, left_out: Counter[str]
) -> pl.DataFrame:
    """Say how often annotators of each pool said yes, by score, for each model."""
    asked = of_criterion(careful_answers(annotations, left_out), options.criterion)
    answers = asked.with_columns(yes=yes_or_no())
    left_out["annotations that say neither yes nor no"] += answers["yes"].null_count()
    known = answers.filter(pl.col("yes").is_not_null()).join(
        images.select("image_id", "model", score="value"), left_on="item_id", right_on="image_id", how="inner"
    )
    left_out["annotations of images without a score"] += answers["yes"].count() - known.height
    rows = []
    for cell in known.sort("model", "annotator_region", "item_id", "annotator").partition_by(
        "model", "annotator_region", maintain_order=True
    ):
        buckets = yes_by_score(
            cell["score"].to_numpy(),
            cell["yes"].to_numpy(),
            images=cell["item_id"].to_list(),
            annotators=cell["annotator"].to_list(),
            width=options.width,
            confidence=options.means.confidence,
        )
        scope = {"metric": metric, "model": cell["model"][0], "pool": cell["annotator_region"][0]}
        rows += [{**scope, **bucket_row(each)} for each in buckets]
    return pl.DataFrame(rows, schema=YES_BY_SCORE.schema)
