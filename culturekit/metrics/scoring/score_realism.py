"""From vectors of real and generated images to PRDC, Fréchet and kernel distance, and the inception score."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.realism.class_scores import split_scores
from culturekit.metrics.realism.extractors import called, licence_of
from culturekit.metrics.realism.features import check_same_width, feature_rows
from culturekit.metrics.realism.image_means import mean_interval, share_interval
from culturekit.metrics.realism.manifolds import Neighbourhoods, coverage_interval, neighbourhoods
from culturekit.metrics.realism.neighbours import RadiiCache
from culturekit.metrics.realism.set_distances import frechet_distance, kernel_distance_interval
from culturekit.metrics.scoring.equal_images import Equal, balanced_references, equal_images
from culturekit.metrics.scoring.image_levels import (
    MeanOptions,
    check_levels,
    placed,
    prompts_of,
    row_of,
    target_of,
    value_rows,
)
from culturekit.metrics.scoring.labelled_vectors import LabelledVectors
from culturekit.metrics.scoring.reference_cells import Cell, cells_with_references
from culturekit.metrics.scoring.scored import Row, Scored, scored
from culturekit.metrics.scoring.value_sets import with_reason
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Interval, Target

__all__ = ["RealismInput", "RealismOptions", "score_realism"]

BEYOND = "generated images beyond as many as every model has"

KERNEL_TARGETS: Mapping[str, str] = {"population": "population", "these": "images"}

FEW_UNITS = f"fewer than {FEWEST_PROMPTS} prompts or images on a side"

NO_FRECHET_INTERVAL = "its bias depends on n, and resampled images would add to it"

NO_INCEPTION_INTERVAL = "its bias depends on n, and its splits are not independent samples of prompts"


@dataclass(frozen=True, slots=True)
class RealismInput:
    """What realism is scored from.

    Attributes:
        real: vectors of real images, ids their image ids.
        fake: vectors of generated images of any number of models.
        images: conforms to IMAGES: model, prompt, concept and country of the generated images; may be none.
        references: the same of the real images; levels need it.
        probs: class probabilities of generated images, for the inception score.
    """

    real: LabelledVectors
    fake: LabelledVectors
    images: pl.DataFrame | None = None
    references: pl.DataFrame | None = None
    probs: LabelledVectors | None = None


@dataclass(frozen=True, slots=True)
class RealismOptions:
    """What to score, and how.

    Attributes:
        k: of the neighbourhoods.
        splits: of the inception score.
        per_cell: references drawn of each object in each region or country, for levels; None takes as many as
            the smallest has.
        seed: of these draws.
        encoder: what made the vectors, as it stands in the params of every score.
        classifier: what made the probabilities.
        equal: whether as many images are drawn of every model, as the distances depend on how many there are.
        most: images of a model at most, where numbers are made equal; None takes all that every model has.
        balanced: whether references of all concepts weigh the same, also where images are not parted by level.
        fewest: images, real and generated, that a cell of a level needs.
        means: levels, target, confidence and names.
    """

    k: int = 5
    splits: int = 10
    per_cell: int | None = None
    seed: int = 0
    encoder: Mapping[str, Any] = field(default_factory=dict)
    classifier: Mapping[str, Any] = field(default_factory=dict)
    equal: bool = True
    most: int | None = None
    balanced: bool = False
    fewest: int = 0
    means: MeanOptions = field(default_factory=MeanOptions)


def score_realism(given: RealismInput, *, options: RealismOptions) -> Scored:
    """Score the images of every model against all real images, and at each level against as many of every cell.

    Images are taken in order of their ids, as many of every model unless `equal` is off. At a level copies count as
    nothing: of images with equal vectors, real or of one model, all are left out; the real ones are then drawn in
    equal numbers from every cell that some model made images for. A cell with too few images for k, or fewer than
    `fewest`, is left out and counted.

    Raises:
        UsageError: an option breaks its rule, or vectors, ids and tables do not belong together.
    """
    means = options.means
    check_levels(means.by)
    left_out: Counter[str] = Counter()
    reals, fakes = feature_rows("real", given.real.vectors), feature_rows("fake", given.fake.vectors)
    check_same_width(("real", reals), ("fake", fakes))
    shown, equal, whole = chosen(given, options, left_out)
    made = equal.images
    target = target_of(made, means)
    cache: RadiiCache = {}
    scores, values = [], []
    cells = cells_with_references(
        made, shown, reals, fakes, by=means.by, k=options.k, per_cell=options.per_cell, seed=options.seed,
        left_out=left_out, whole=whole, fewest=options.fewest, lenient=options.balanced,
    )  # fmt: skip
    for cell in cells:
        told = params_of(cell, options) | equal.told
        rows, behind = cell_rows(cell, reals, fakes, options, params=told, target=target, cache=cache)
        scores += rows
        values += behind
    if given.probs is not None:
        rows, behind = class_rows(given.probs, given.images, options, left_out)
        scores += rows
        values += behind
    return scored(scores, values, left_out={reason: count for reason, count in sorted(left_out.items()) if count})


def chosen(given: RealismInput, options: RealismOptions, left_out: Counter[str]) -> tuple[pl.DataFrame, Equal, Equal]:
    """Place all images: the real ones, the generated ones that are scored, and the real ones they are held against."""
    means, wants_places = options.means, bool(options.means.by) or options.balanced
    made = placed(given.fake.ids, given.images, means, what="generated vectors", left_out=left_out)
    if wants_places and given.references is None:
        raise UsageError(
            "levels and balanced references need to know where the real images belong",
            expected="a table of the real images",
        )
    places = given.references if wants_places else None
    shown = placed(given.real.ids, places, means, what="real vectors", left_out=left_out)
    if made.is_empty() or shown.is_empty():
        raise UsageError("there are no images to score", expected="vectors whose ids are in the table of images")
    equal = equal_images(made, seed=options.seed, most=options.most) if options.equal else Equal(made)
    left_out[BEYOND] += equal.left_out
    whole = balanced_references(shown, equal.images, seed=options.seed) if options.balanced else Equal(shown)
    each = whole.told.get("per_concept")
    left_out[f"real images, as each concept gives as many as {whole.least} has: {each}"] += whole.left_out
    return shown, equal, whole


def cell_rows(
    cell: Cell,
    reals: NDArray[np.floating],
    fakes: NDArray[np.floating],
    options: RealismOptions,
    *,
    params: Mapping[str, object],
    target: Target,
    cache: RadiiCache,
) -> tuple[list[Row], list[Row]]:
    """Score the images of one model in one cell."""
    real, fake = reals[cell.references["row"].to_numpy()], fakes[cell.images["row"].to_numpy()]
    prompts = prompts_of(cell.images)
    target = "population" if prompts is None else target
    codes = np.arange(len(fake)) if prompts is None else np.unique(prompts, return_inverse=True)[1]
    groups = codes if target == "population" else np.arange(len(fake))
    place = {**cell.place, "benchmark": options.means.benchmark}
    try:
        found = neighbourhoods(real, fake, k=options.k, groups=groups, cache=cache)
    except UsageError as error:
        error.where = error.where or f"model {cell.place['model']!r}"
        raise
    confidence = options.means.confidence
    strata = None if target == "population" else codes
    coverage = coverage_interval(found, strata=strata, groups=int(groups.max()) + 1, confidence=confidence)
    rows, values = prdc_rows(cell, found, coverage, place, params, prompts, target, confidence)
    distance = Interval(frechet_distance(real, fake), np.nan, np.nan, len(fake), target)
    counts = {"n_fake": len(fake)}
    own = {**params, **counts, **name_of("frechet_distance", options), "no_interval": NO_FRECHET_INTERVAL}
    rows.append(row_of({**place, "metric": "frechet_distance"}, distance, own))
    kernel = kernel_answer(real, fake, groups, confidence)
    own = {**params, **name_of("kernel_distance", options), "target": KERNEL_TARGETS[target]}
    own = with_reason(own, kernel, FEW_UNITS)
    rows.append(row_of({**place, "metric": "kernel_distance"}, kernel, own))
    return rows, values


def name_of(metric: str, options: RealismOptions) -> dict[str, object]:
    """Say what a distance may be called on these vectors."""
    return {"called": called(metric, options.encoder)}


def params_of(cell: Cell, options: RealismOptions) -> dict[str, object]:
    """Say what every score of a cell depends on."""
    balanced = {"references": "balanced", "per_cell": cell.per_cell, "seed": options.seed, "copies": "left out"}
    scheme = {"scheme": options.means.scheme} if cell.place.get("group") else {}
    whole = dict(cell.told) or {"references": "all", "copies": "kept"}
    return {
        "encoder": dict(options.encoder),
        "licence": licence_of(options.encoder),
        "n_real": cell.references.height,
        **(whole if cell.per_cell is None else {**balanced, **scheme}),
    }


def prdc_rows(
    cell: Cell,
    found: Neighbourhoods,
    coverage: Interval,
    place: Row,
    params: Mapping[str, object],
    prompts: list[str] | None,
    target: Target,
    confidence: float,
) -> tuple[list[Row], list[Row]]:
    """Write the four shares, each with the images it is the mean of."""
    counts = {"k": found.k, "n_fake": len(found.around_fake)}
    of_fakes, of_reals = {**params, "k": found.k, "target": target}, {**params, **counts, "target": "references"}
    inside, density = found.around_fake > 0, found.around_fake / found.k
    answers = {
        "prdc_precision": (
            share_interval(inside, clusters=prompts, target=target, confidence=confidence), of_fakes, inside,
        ),
        "prdc_density": (
            mean_interval(density, clusters=prompts, target=target, confidence=confidence), of_fakes, density,
        ),
        "prdc_recall": (share_interval(found.recalled, confidence=confidence), of_reals, found.recalled),
        "prdc_coverage": (coverage, {**params, **counts, "target": target}, found.covered),
    }  # fmt: skip
    rows, values = [], []
    for metric, (answer, told, behind) in answers.items():
        images = cell.images if told is of_fakes else cell.references
        rows.append(row_of({**place, "metric": metric}, answer, told))
        one_each = images.with_columns(value=pl.Series(behind).cast(pl.Float64))
        values += value_rows({**place, "metric": metric}, one_each, told)
    return rows, values


def kernel_answer(
    real: NDArray[np.floating], fake: NDArray[np.floating], groups: NDArray[np.int64], confidence: float
) -> Interval:
    """Give the kernel distance; with fewer than 20 prompts, or real images, there are no limits."""
    answer = kernel_distance_interval(fake, real, a_clusters=groups, confidence=confidence)
    if min(len(np.unique(groups)), len(real)) < FEWEST_PROMPTS:
        return Interval(answer.value, np.nan, np.nan, answer.n, answer.target)
    return answer


def class_rows(
    probs: LabelledVectors, images: pl.DataFrame | None, options: RealismOptions, left_out: Counter[str]
) -> tuple[list[Row], list[Row]]:
    """Score what a classifier said of each model's images, in order of their ids; the values are the splits'."""
    made = placed(probs.ids, images, options.means, what="class probabilities", left_out=left_out)
    equal = equal_images(made, seed=options.seed, most=options.most) if options.equal else Equal(made)
    rows, values = [], []
    for cell in equal.images.partition_by("model", maintain_order=True):
        if cell.height < options.splits:
            left_out[f"models with fewer than {options.splits} images, the splits of the inception score"] += 1
            continue
        splits = split_scores(probs.vectors[cell["row"].to_numpy()], splits=options.splits)
        params = {
            "encoder": dict(options.classifier), "licence": licence_of(options.classifier), "splits": options.splits,
            "n_fake": cell.height, "no_interval": NO_INCEPTION_INTERVAL, **equal.told,
        }  # fmt: skip
        place = {"model": cell["model"][0], "benchmark": options.means.benchmark, "metric": "inception_score"}
        rows.append(row_of(place, Interval(float(splits.mean()), np.nan, np.nan, cell.height, "these"), params))
        parts = pl.DataFrame({"image_id": [f"split {number}" for number in range(len(splits))], "value": splits})
        blank = parts.with_columns(prompt_id=pl.lit(None, pl.String), repeat=pl.lit(None, pl.UInt16))
        values += value_rows(place, blank, params)
    return rows, values
