"""From vectors of images and texts to CLIPScore, of prompts, regions and objects."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error, check_choice
from culturekit.metrics.realism.clip_scores import (
    PRESENCE_THRESHOLDS,
    clip_score,
    consistency_interval,
    objects_present,
    yes_by_score,
)
from culturekit.metrics.scoring.image_collections import checked
from culturekit.metrics.scoring.image_levels import (
    MeanOptions,
    cells_of,
    check_levels,
    mean_rows,
    placed,
    row_of,
    target_of,
)
from culturekit.metrics.scoring.labelled_vectors import LabelledVectors
from culturekit.metrics.scoring.scored import Row, Scored, scored
from culturekit.metrics.statistics.intervals import Target
from culturekit.records.schemas import ANNOTATIONS, YES_BY_SCORE

__all__ = ["TEXTS", "ClipInput", "ClipOptions", "ClipScores", "score_clip", "thresholds_of"]

TEXTS: Mapping[str, tuple[str, str, float]] = {
    "prompt": ("clip_score", "prompt_id", 100.0),
    "region": ("region_clip_score", "group", 1.0),
    "country": ("region_clip_score", "country", 1.0),
    "object": ("object_clip_score", "concept", 1.0),
}
"""What texts are of -> the metric, the column of images that holds the id of each one's text, and the scale."""

YES, NO = ("yes", "y", "true", "1"), ("no", "n", "false", "0")


@dataclass(frozen=True, slots=True)
class ClipInput:
    """What CLIPScore is computed from.

    Attributes:
        images: vectors of images, ids their image ids.
        texts: vectors of texts from the same encoder; ids as TEXTS says.
        table: conforms to IMAGES.
        annotations: conforms to ANNOTATIONS, items being images; may be none.
    """

    images: LabelledVectors
    texts: LabelledVectors
    table: pl.DataFrame
    annotations: pl.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class ClipOptions:
    """What to score, and how.

    Attributes:
        texts: what the texts are of, one of TEXTS.
        thresholds: model -> the cosine from which its object counts as shown; "" stands for every other model.
        percentile: of the consistency of objects.
        criterion: of the annotations that ask what the score should tell; with none there is no curve.
        width: of a bucket of the curve.
        encoder: what made the vectors.
        means: levels, target, confidence and names.
    """

    texts: str = "prompt"
    thresholds: Mapping[str, float] = field(default_factory=lambda: {"": PRESENCE_THRESHOLDS["geode"]})
    percentile: float = 10.0
    criterion: str = "object"
    width: float = 0.01
    encoder: Mapping[str, Any] = field(default_factory=dict)
    means: MeanOptions = field(default_factory=lambda: MeanOptions(benchmark="clip"))


@dataclass(frozen=True, slots=True)
class ClipScores:
    """Scores, and how often people said yes by score (YES_BY_SCORE; empty without annotations)."""

    scored: Scored
    curve: pl.DataFrame


def score_clip(given: ClipInput, *, options: ClipOptions) -> ClipScores:
    """Score every image against its text, per model, all together and at each level.

    Texts of objects add the share of images whose object counts as shown, and the consistency of objects: the mean
    over objects of a low percentile.

    Raises:
        UsageError: an option breaks its rule, or vectors, ids and tables do not belong together.
    """
    check_choice("texts", options.texts, tuple(TEXTS))
    check_levels(options.means.by)
    left_out: Counter[str] = Counter()
    images = scored_images(given, options, left_out)
    metric, _, scale = TEXTS[options.texts]
    target = target_of(images, options.means)
    params = {"encoder": dict(options.encoder), "scale": scale, "texts": options.texts}
    scores, values = mean_rows(images, metric, options.means, params, target=target)
    if options.texts == "object":
        for rows, behind in object_rows(images, options, params, target):
            scores += rows
            values += behind
    curve = pl.DataFrame(schema=YES_BY_SCORE.schema)
    if given.annotations is not None:
        curve = curve_of(images, given.annotations, metric, options, left_out)
    counts = {reason: count for reason, count in sorted(left_out.items()) if count}
    return ClipScores(scored(scores, values, left_out=counts), curve)


def scored_images(given: ClipInput, options: ClipOptions, left_out: Counter[str]) -> pl.DataFrame:
    """Give the images that have a text, with their score as `value`."""
    metric, column, scale = TEXTS[options.texts]
    images = placed(given.images.ids, given.table, options.means, what="vectors of images", left_out=left_out)
    if len(set(given.texts.ids)) < len(given.texts.ids):
        twice = Counter(given.texts.ids).most_common(1)[0][0]
        raise UsageError("an id stands twice among the texts", found=repr(twice))
    texts = pl.DataFrame({"text": range(len(given.texts.ids)), column: list(given.texts.ids)})
    found = images.join(texts.cast({column: pl.String}), on=column, how="inner", maintain_order="left")
    left_out["images without a text"] += images.height - found.height
    if found.is_empty():
        raise UsageError(
            f"no image has a text for {metric}",
            expected=f"ids of texts that stand in the column {column} of images",
            found=f"texts such as {given.texts.ids[0]!r}" if given.texts.ids else "no texts",
        )
    own = np.asarray(given.images.vectors)[found["row"].to_numpy()]
    other = np.asarray(given.texts.vectors)[found["text"].to_numpy()]
    return found.with_columns(value=pl.Series(clip_score(own, other, scale=scale)))


def object_rows(
    images: pl.DataFrame, options: ClipOptions, params: Mapping[str, object], target: Target
) -> list[tuple[list[Row], list[Row]]]:
    """Write presence and consistency of objects."""
    thresholds = [
        (model, options.thresholds.get(model, options.thresholds.get("")))
        for model in images["model"].unique().sort().to_list()
    ]
    answers = []
    for model, threshold in thresholds:
        if threshold is None:
            raise argument_error("thresholds", f"given for {model!r}, or for every model", dict(options.thresholds))
        own = images.filter(model=model)
        present = pl.Series(objects_present(own["value"].to_numpy(), threshold=threshold)).cast(pl.Float64)
        told = {**params, "threshold": threshold}
        shown = own.with_columns(value=present)
        answers.append(mean_rows(shown, "object_presence", options.means, told, target=target, share=True))
    rows: list[Row] = []
    for place, cell in cells_of(images, options.means.by):
        if place.get("concept") is not None:
            # A single object: its percentile is no mean over objects.
            continue
        answer = consistency_interval(
            cell["value"].to_numpy(),
            objects=cell["concept"].to_list(),
            percentile=options.percentile,
            confidence=options.means.confidence,
        )
        told = {**params, "percentile": options.percentile, "target": "images"}
        told |= {"scheme": options.means.scheme} if place.get("group") else {}
        rows.append(
            row_of({**place, "benchmark": options.means.benchmark, "metric": "object_consistency"}, answer, told)
        )
    return [*answers, (rows, [])]


def curve_of(
    images: pl.DataFrame, annotations: pl.DataFrame, metric: str, options: ClipOptions, left_out: Counter[str]
) -> pl.DataFrame:
    """Say how often annotators of each pool said yes, by score, for each model."""
    asked = checked(annotations, ANNOTATIONS).filter(criterion=options.criterion)
    if asked.is_empty():
        found = ", ".join(annotations["criterion"].unique().sort().to_list()) or "no annotations"
        raise UsageError(f"no annotation is of the criterion {options.criterion!r}", found=found)
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
        place = {"metric": metric, "model": cell["model"][0], "pool": cell["annotator_region"][0]}
        rows += [{**place, **bucket_row(each)} for each in buckets]
    return pl.DataFrame(rows, schema=YES_BY_SCORE.schema)


def yes_or_no() -> pl.Expr:
    """Read an answer from the value (1 or 0) or the choice (yes or no); null for anything else."""
    choice = pl.col("choice").str.strip_chars().str.to_lowercase()
    return (
        pl.when(pl.col("value").is_in([0.0, 1.0]))
        .then(pl.col("value") == 1)
        .when(choice.is_in(YES))
        .then(statement=True)
        .when(choice.is_in(NO))
        .then(statement=False)
        .otherwise(None)
    )


def bucket_row(bucket: Any) -> Row:  # noqa: ANN401 - a YesBucket
    """Write a bucket; a limit that is not known is null."""
    return {
        "low": bucket.low,
        "score": bucket.score,
        "rate": bucket.rate,
        "ci_low": None if np.isnan(bucket.ci_low) else bucket.ci_low,
        "ci_high": None if np.isnan(bucket.ci_high) else bucket.ci_high,
        "images": bucket.images,
        "answers": bucket.answers,
    }


def thresholds_of(texts: Sequence[str]) -> dict[str, float]:
    """Read thresholds as they are typed: `0.21` for every model, `MODEL=0.25` for one."""
    found: dict[str, float] = {}
    for text in texts:
        model, _, number = text.rpartition("=")
        try:
            found[model] = float(number)
        except ValueError as error:
            raise argument_error("threshold", "a cosine such as 0.21, or MODEL=0.25", text) from error
    return found
