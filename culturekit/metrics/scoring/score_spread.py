"""How unlike the images of a batch look, as cosines of vectors and as a perceptual distance: what stands beside VS."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from culturekit.metrics.arguments import argument_error, check_choice, check_size
from culturekit.metrics.diversity.cosine_means import mean_cosine
from culturekit.metrics.realism.extractors import licence_of
from culturekit.metrics.scoring.image_levels import MeanOptions, placed
from culturekit.metrics.scoring.score_c3 import LabelledVectors
from culturekit.metrics.scoring.scored import Row, Scored, scored
from culturekit.metrics.scoring.value_sets import statistic_row, with_reason
from culturekit.metrics.statistics.intervals import Interval, Target, interval
from culturekit.storage.digests import canonical_json

__all__ = ["SpreadInput", "SpreadOptions", "score_spread"]

FEW_REPEATS = "a prompt with one repeat does not say how much it scatters"
NO_PROMPT = "images that name no prompt or repeat"
INCOMPLETE = "images of an incomplete batch"


@dataclass(frozen=True, slots=True)
class SpreadInput:
    """What the spread of images is scored from.

    Attributes:
        images: conforms to IMAGES: model, prompt, repeat, slot and concept.
        vectors: of the images; may be none.
        distances: conforms to PAIR_DISTANCES; may be none.
    """

    images: pl.DataFrame
    vectors: LabelledVectors | None = None
    distances: pl.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class SpreadOptions:
    """How it is scored.

    Attributes:
        size: how many images make a batch, as of VS.
        target: what intervals speak about: these prompts, or the population they stand for.
        confidence: of the intervals.
        encoder: what made the vectors.
        measures: what made the distances, by the name of the measure.
        benchmark: the name under which the scores stand.
    """

    size: int = 8
    target: Target = "these"
    confidence: float = 0.95
    encoder: Mapping[str, Any] = field(default_factory=dict)
    measures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    benchmark: str = "spread"


def score_spread(given: SpreadInput, *, options: SpreadOptions) -> Scored:
    """Score every model on each concept, and over all where there are several.

    Within a repeat of a prompt, images in the order of their slots make batches, as for VS; incomplete ones enter no
    score. A score is averaged over the batches of a repeat, then over repeats, then over prompts; the means of the
    repeats are its values.

    Raises:
        UsageError: an option breaks its rule, or vectors, ids and tables do not belong together.
    """
    check_size(options.size)
    if options.size < 2:
        raise argument_error("size", "at least 2 images, as one has no other to be unlike", options.size)
    check_choice("target", options.target, ("these", "population"))
    if not 0 < options.confidence < 1:
        raise argument_error("confidence", "between 0 and 1", options.confidence)
    left_out: Counter[str] = Counter()
    tables: list[tuple[str, pl.DataFrame, dict[str, object]]] = []
    if given.vectors is not None:
        told: dict[str, object] = {
            "encoder": dict(options.encoder), "licence": licence_of(options.encoder), "size": options.size,
        }  # fmt: skip
        tables.append(("mean_cosine", batch_cosines(given.images, given.vectors, options.size, left_out), told))
    if given.distances is not None:
        other = given.distances.filter(pl.col("images") != options.size)
        left_out[f"images of batches of another size than {options.size}"] += int(other["images"].sum())
        full = given.distances.filter(pl.col("images") == options.size)
        for (measure,), own in full.group_by("measure", maintain_order=True):
            told = {"measure": dict(options.measures.get(str(measure), {"name": measure})), "size": options.size}
            tables.append(("mean_lpips", own.rename({"distance": "value"}), told))
    scores: list[Row] = []
    values: list[Row] = []
    for metric, batches, told in tables:
        for place, own in parts_of(batches):
            score, behind = answer(metric, place, own, told, options)
            scores.append(score)
            values += behind
    return scored(scores, values, left_out=dict(sorted((+left_out).items())))


def batch_cosines(images: pl.DataFrame, vectors: LabelledVectors, size: int, left_out: Counter[str]) -> pl.DataFrame:
    """Give the mean cosine of each full batch: model, concept, prompt_id, repeat, images, value."""
    known = placed(vectors.ids, images, MeanOptions(), what="vectors", left_out=left_out)
    slots = images.select("image_id", "slot")
    ordered = known.join(slots, on="image_id", how="left").drop_nulls(["prompt_id", "repeat"])
    left_out[NO_PROMPT] += known.height - ordered.height
    ordered = ordered.sort("model", "prompt_id", "repeat", "slot", "image_id")
    rows = []
    for (model, prompt, repeat), own in ordered.group_by("model", "prompt_id", "repeat", maintain_order=True):
        places = own["row"].to_numpy()
        full = len(places) // size
        left_out[INCOMPLETE] += len(places) - full * size
        for number in range(full):
            batch = np.asarray(vectors.vectors[places[number * size : (number + 1) * size]])
            rows.append((model, own["concept"][0], prompt, repeat, size, mean_cosine(batch)))
    names = {"model": pl.String, "concept": pl.String, "prompt_id": pl.String, "repeat": pl.UInt16}
    return pl.DataFrame(rows, {**names, "images": pl.UInt32, "value": pl.Float64}, orient="row")


def parts_of(batches: pl.DataFrame) -> Iterator[tuple[Row, pl.DataFrame]]:
    """Give the batches of each model and concept, and of each model where it has several concepts."""
    for (model,), own in batches.sort("model", "concept").group_by("model", maintain_order=True):
        concepts = own["concept"].unique().sort().to_list()
        for concept in concepts:
            yield {"model": model, "concept": concept}, own.filter(pl.col("concept").eq_missing(concept))
        if len(concepts) > 1:
            yield {"model": model, "concept": None}, own


def answer(
    metric: str, place: Row, batches: pl.DataFrame, told: Mapping[str, object], options: SpreadOptions
) -> tuple[Row, list[Row]]:
    """Average the batches over repeats and prompts, and write score and values."""
    repeats = batches.group_by("prompt_id", "repeat").agg(pl.col("value").mean()).sort("prompt_id", "repeat")
    found = interval(
        repeats["value"].to_numpy(),
        prompts=repeats["prompt_id"].to_list(),
        repeats=repeats["repeat"].to_numpy(),
        target=options.target,
        confidence=options.confidence,
    )
    params: dict[str, object] = {
        **told, "target": options.target, "confidence": options.confidence, "prompts": repeats["prompt_id"].n_unique(),
    }  # fmt: skip
    if math.isnan(found.low):
        params = with_reason(params, found, FEW_REPEATS)
    entered = replace(found, n=int(batches["images"].sum()))
    own = {**place, "benchmark": options.benchmark}
    score = statistic_row(metric, **own, answer=Interval(entered.value, entered.low, entered.high, entered.n, "these"),
                          params=params)  # fmt: skip
    text = canonical_json(params).decode()
    behind = [
        {**own, "metric": metric, "params": text, "item": f"{prompt}/{repeat}", "prompt_id": prompt, "repeat": repeat,
         "value": value}
        for prompt, repeat, value in repeats.iter_rows()
    ]  # fmt: skip
    return score, behind
