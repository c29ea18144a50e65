"""The images of one model in one cell beside real ones: all of these, or equally many from every cell."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.errors import NothingScored, UsageError
from culturekit.families.handles.image_levels import LEVELS, MeanOptions, Rows, cells_of, prompts_of
from culturekit.metrics.realism.extractors import called, licence_of
from culturekit.metrics.realism.features import unduplicated
from culturekit.metrics.realism.image_means import mean_interval, share_interval
from culturekit.metrics.realism.manifolds import Neighbourhoods, balanced_sample, coverage_interval, neighbourhoods
from culturekit.metrics.realism.neighbours import RadiiCache
from culturekit.metrics.realism.set_distances import frechet_distance, kernel_distance_interval
from culturekit.metrics.scoring.equal_images import Equal
from culturekit.metrics.scoring.score_rows import Row, statistic_row, value_rows, with_reason
from culturekit.metrics.scoring.value_sets import own_generator
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Interval, Target
from culturekit.stages.stage_command import Seed, Typed

__all__ = ["Cell", "RealismMeans", "RealismOptions", "cell_rows", "cells_with_references", "params_of"]

KERNEL_TARGETS: Mapping[str, str] = {"population": "population", "these": "images"}

FEW_UNITS = f"fewer than {FEWEST_PROMPTS} prompts or images on a side"

NO_FRECHET_INTERVAL = "its bias depends on n, and resampled images would add to it"


@dataclass(frozen=True, slots=True)
class RealismMeans(MeanOptions):
    """How means are made; whose images they are is said where no table says it."""

    model: Annotated[str, Field(description="Whose images they are, where no table says it.")] = "images"


@dataclass(frozen=True, slots=True)
class RealismOptions:
    """What to score, and how; the seed is that of draws. Encoder and classifier stand in the params of scores."""

    k: Annotated[int, Field(ge=1, description="Neighbourhoods reach to the k-th neighbour.")] = 5
    splits: Annotated[int, Field(ge=1, description="Of the inception score."), Typed(needs="probs")] = 10
    means: RealismMeans = RealismMeans()
    per_cell: Annotated[
        int | None,
        Field(ge=1, description="Real images drawn of each object and place. [as many as the fewest have]"),
        Typed(after="groups", needs="by"),
    ] = None
    equal: Annotated[
        bool,
        Field(description="As many images of every model, drawn by --seed; or all that there are."),
        Typed("equal/--all"),
    ] = True
    most: Annotated[
        int | None, Field(ge=2, description="Images of a model at most, each prompt giving as many. [all]")
    ] = None
    balanced: Annotated[
        bool,
        Field(description="Equally many references of each object, over its countries in turn."),
        Typed("balanced"),
    ] = False
    fewest: Annotated[
        int,
        Field(ge=0, description="Images, real and generated, without which a cell of --by is left out."),
        Typed(needs="by"),
    ] = 0
    seed: Seed = 0
    encoder: Mapping[str, Any] = field(default_factory=dict)
    classifier: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cell:
    """Images of a model, and the real images they are held against.

    Attributes:
        place: model, and the columns of the level.
        images: the generated ones, as `placed` gives them.
        references: the real ones.
        per_cell: how many real ones were drawn of each cell; None where no level is meant.
        params: how the real ones were drawn where no level is meant; empty where all are meant.
    """

    place: Row
    images: pl.DataFrame
    references: pl.DataFrame
    per_cell: int | None
    params: Mapping[str, object] = field(default_factory=dict)


def cells_with_references(
    made: pl.DataFrame,
    shown: pl.DataFrame,
    reals: NDArray[np.floating],
    fakes: NDArray[np.floating],
    whole: Equal,
    options: RealismOptions,
    left_out: Counter[str],
) -> Iterator[Cell]:
    """Give each model with the references of `whole`, then, at each level, each cell with balanced ones.

    References of `whole` that were drawn in equal numbers of each concept serve the level of concepts, too, and copies
    count there as they do over all. Where balanced ones are asked for, and no real image has a place, levels are left
    out and counted.
    """
    by = options.means.by
    for place, images in cells_of(made, ()):
        yield Cell(place, images, whole.images, None, whole.params)
    if (
        options.balanced
        and shown.select(pl.all_horizontal(pl.col("concept", "country", "group").is_null()).all()).item()
    ):
        left_out["levels, as no real image says what it shows or where it is from"] += len(by)
        return
    if not by:
        return
    drawn, each, told, parted = whole.images, None, whole.params, made
    if not told or set(by) != {("concept",)}:
        told = {}
        usable = without_copies(shown, reals, "real images with the vector of another", left_out)
        parted = pl.concat([
            without_copies(images, fakes, "generated images with the vector of another of the model", left_out)
            for images in made.partition_by("model", maintain_order=True)
        ])  # fmt: skip
        drawn, each = balanced(usable, parted, options, left_out)
    for place, images in cells_of(parted, by):
        columns = [name for name in place if name != "model"]
        if not columns:
            continue
        references = drawn.filter(pl.all_horizontal(pl.col(name) == place[name] for name in columns))
        size = min(images.height, references.height)
        if size <= options.k:
            left_out[f"cells with at most {options.k} images, real or generated"] += 1
        elif size < options.fewest:
            left_out[f"cells with fewer than {options.fewest} images, real or generated"] += 1
        else:
            yield Cell(place, images, references, each, told)


def without_copies(
    images: pl.DataFrame, vectors: NDArray[np.floating], what: str, left_out: Counter[str]
) -> pl.DataFrame:
    """Leave out every image whose vector another one has too."""
    kept = images.filter(pl.Series(unduplicated(vectors[images["row"].to_numpy()]), dtype=pl.Boolean))
    left_out[what] += images.height - kept.height
    return kept


def balanced(
    shown: pl.DataFrame, made: pl.DataFrame, options: RealismOptions, left_out: Counter[str]
) -> tuple[pl.DataFrame, int]:
    """Draw equally many references of every cell of the finest level that some model has images of."""
    names = {name for level in options.means.by for name in level}
    if shown["concept"].null_count() == 0 and made["concept"].null_count() == 0:
        # Objects weigh the same in a region, also where regions are not parted by object.
        names.add("concept")
    columns = [column for name, column in LEVELS.items() if name in names]
    known = shown.filter(pl.all_horizontal(pl.col(columns).is_not_null()))
    left_out["real images that no level has a place for"] += shown.height - known.height
    asked = known.join(made.select(columns).unique(), on=columns, how="semi", maintain_order="left")
    left_out["real images of cells without generated ones"] += known.height - asked.height
    if asked.is_empty():
        raise NothingScored(
            "no cell has both real and generated images",
            expected=f"the same {' and '.join(columns)} on both sides",
            found=f"{known.height} real images with a place, {made.height} generated ones",
        ).counting(left_out)
    cells = asked.select(pl.concat_str(columns, separator=" / ")).to_series().to_list()
    drawn = asked[balanced_sample(cells, size=options.per_cell, rng=own_generator(options.seed, "references"))]
    return drawn, drawn.height // len(set(cells))


def cell_rows(
    cell: Cell,
    reals: NDArray[np.floating],
    fakes: NDArray[np.floating],
    options: RealismOptions,
    *,
    params: Mapping[str, object],
    target: Target,
    cache: RadiiCache,
) -> Rows:
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
    own |= few_for(real, fake)
    rows.append(statistic_row(**{**place, "metric": "frechet_distance"}, answer=distance, params=own))
    kernel = kernel_answer(real, fake, groups, confidence)
    own = {**params, **name_of("kernel_distance", options), "target": KERNEL_TARGETS[target]}
    own = with_reason(own, kernel, FEW_UNITS)
    rows.append(statistic_row(**{**place, "metric": "kernel_distance"}, answer=kernel, params=own))
    return rows, values


def few_for(real: NDArray[np.floating], fake: NDArray[np.floating]) -> dict[str, object]:
    """Warn of sets with fewer images than dimensions: how such a set spreads is not known in all of them."""
    images, width = min(len(real), len(fake)), real.shape[1]
    few = f"{images:,} images, fewer than the {width:,} dimensions: not how a set spreads in all of them"
    return {"few_images": few} if images < width else {}


def name_of(metric: str, options: RealismOptions) -> dict[str, object]:
    """Say what a distance may be called on these vectors."""
    return {"called": called(metric, options.encoder)}


def params_of(cell: Cell, options: RealismOptions) -> dict[str, object]:
    """Say what every score of a cell depends on."""
    balanced = {"references": "balanced", "per_cell": cell.per_cell, "seed": options.seed, "copies": "left out"}
    scheme = {"scheme": options.means.scheme} if cell.place.get("group") else {}
    whole = dict(cell.params) or {"references": "all", "copies": "kept"}
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
) -> Rows:
    """Write the four shares, each with the images it is the mean of."""
    counts = {"k": found.k, "n_fake": len(found.around_fake)}
    of_fakes, of_reals = {**params, "k": found.k, "target": target}, {**params, **counts, "target": "references"}
    inside, density = found.around_fake > 0, found.around_fake / found.k
    mean = mean_interval(density, clusters=prompts, target=target, confidence=confidence)
    answers = {
        "prdc_precision": (
            share_interval(inside, clusters=prompts, target=target, confidence=confidence), of_fakes, inside,
        ),
        "prdc_density": (replace(mean, low=max(mean.low, 0.0)), of_fakes, density),
        "prdc_recall": (share_interval(found.recalled, confidence=confidence), of_reals, found.recalled),
        "prdc_coverage": (coverage, {**params, **counts, "target": target}, found.covered),
    }  # fmt: skip
    rows, values = [], []
    for metric, (answer, told, behind) in answers.items():
        images = cell.images if told is of_fakes else cell.references
        rows.append(statistic_row(**{**place, "metric": metric}, answer=answer, params=told))
        one_each = images.rename({"image_id": "item"}).with_columns(value=pl.Series(behind).cast(pl.Float64))
        values.append(value_rows({**place, "metric": metric}, told, one_each))
    return rows, values


def kernel_answer(
    real: NDArray[np.floating], fake: NDArray[np.floating], groups: NDArray[np.int64], confidence: float
) -> Interval:
    """Give the kernel distance; with fewer than 20 prompts, or real images, there are no limits."""
    answer = kernel_distance_interval(fake, real, a_clusters=groups, confidence=confidence)
    if min(len(np.unique(groups)), len(real)) < FEWEST_PROMPTS:
        return Interval(answer.value, np.nan, np.nan, answer.n, answer.target)
    return answer
