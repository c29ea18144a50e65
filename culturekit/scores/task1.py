"""From annotations of triplets to agreement, appeal and how distances follow what people see as similar."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from culturekit.core.declared import kept
from culturekit.core.defaults import CONFIDENCE
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.inputs import roles_of
from culturekit.core.schemas import TASK1
from culturekit.core.stage import Stage
from culturekit.core.stage_command import Typed
from culturekit.core.tables import read_table
from culturekit.core.work import Work
from culturekit.metrics.inclusion.region_rates import item_agreement, task1_answers
from culturekit.metrics.inclusion.task2_files import LEAST_ACCURACY, Reliable, drop_unreliable
from culturekit.metrics.inclusion.triplet_distances import (
    Features,
    appealing_inside,
    binned_choices,
    both_criteria,
    check_triplets,
)
from culturekit.metrics.statistics.intervals import clustered_share, proportion_interval
from culturekit.scores.family import Confidence, Family, described, family_stage
from culturekit.scores.image_collections import checked
from culturekit.scores.inputs import Extractor, check_extractors, extractor, told_apart
from culturekit.scores.score_rows import Row, Scored, scored, statistic_row, value_rows, with_reason

UNRELIABLE = "annotations of unreliable annotators"
UNCHECKED = "kept unchecked, for want of photographs"

ONE = "one image and one annotator"

CELL = ("region",)
AGREEING = ("source", "region")

Least: TypeAlias = Annotated[
    float,
    Field(ge=0, le=1, description="Share of photographs in which an annotator must see the object; 0 keeps all."),
]


@dataclass(frozen=True, slots=True)
class Task1Reads:
    """What people said of triplets, and vectors of the images in them."""

    task1: Annotated[Path, Field(description="Table of what people said of triplets.")]
    features: Annotated[
        tuple[Extractor, ...],
        Field(description="EXTRACTOR=FOLDER: vectors of the images in the triplets; repeat it to compare extractors."),
        Typed(read=partial(extractor, option="--features")),
    ] = ()
    real: Annotated[
        Extractor | None,
        Field(description="EXTRACTOR=FOLDER: vectors of all real images, the manifold of appeal."),
        Typed(read=partial(extractor, option="--real")),
    ] = None


class Shares(Protocol):
    """What the options of both tasks have in common."""

    @property
    def least(self) -> float:
        """The accuracy that annotators had to reach."""

    @property
    def confidence(self) -> float:
        """Of the intervals."""

    @property
    def benchmark(self) -> str:
        """The name under which the scores stand."""


@dataclass(frozen=True, slots=True)
class Task1Options:
    """What to score, and how."""

    k: Annotated[
        int, Field(ge=1, description="Neighbours that the manifold's balls reach to."), Typed(needs="real")
    ] = 5
    bins: Annotated[int, Field(ge=1, description="Bins of triplet distances."), Typed(needs="features")] = 10
    least: Least = LEAST_ACCURACY
    confidence: Confidence = CONFIDENCE
    benchmark: str = "inclusion"


def task1(given: Task1Reads, options: Task1Options, *, name: str = "scores") -> Stage:
    """Score agreement on similarity and appeal.

    And how they follow distances and the manifold of real images.
    """

    def score(_: Work) -> Scored:
        extractors: dict[str, dict[str, ArrayLike]] = {}
        check_extractors([*given.features, *([] if given.real is None else [given.real])])
        for each in given.features:
            extractors.setdefault(each.name, {}).update(each.by_image())
        real = given.real
        manifold = None if real is None else RealFeatures(real.name, real.vectors.vectors()[0], options.k)
        return score_task1(read_table(given.task1, TASK1), extractors, manifold, options=options)

    known = {**kept(options), "real": None if given.real is None else given.real.name}
    inputs = roles_of(replace(given, features=tuple(told_apart(given.features))))
    return family_stage("task1", inputs, known, score, name=name)


TASK_1 = Family(
    task1,
    metrics=described(
        "appeal_in_manifold appeal_with_similarity closer_choice_rate location_agreement location_unanimity"
    ),
    example="--task1 annotations/task1.parquet --out scores",
)


@dataclass(frozen=True, slots=True)
class RealFeatures:
    """The manifold that appeal is held against: features (n_real, dim) by an extractor, and how many neighbours."""

    extractor: str
    real: NDArray[np.floating]
    k: int = 5


def score_task1(
    annotations: pl.DataFrame,
    extractors: Mapping[str, Features] | None = None,
    real: RealFeatures | None = None,
    *,
    options: Task1Options,
) -> Scored:
    """Score agreement, co-occurrence, and, with features, closer choices and appeal within the manifold.

    All stand by the source of the images compared (column model), region (column group) and location of the annotators
    (params.pool).

    Args:
        annotations: conforms to TASK1.
        extractors: extractor -> image id -> vector, for the choices of closer images.
        real: the real images; their extractor must be among the extractors.
        options: what to score, and how.

    Raises:
        UsageError: the table does not conform, nothing is left of it, or an image has no vector.
    """
    check_triplets(checked(annotations, TASK1))
    reliable, left_out = reliable_answers(annotations, least=options.least)
    table = reliable.annotations
    pooled = table.with_columns(pool="annotator_loc")
    shares = [*share_rows("appeal_with_similarity", both_criteria(pooled).with_columns(yes="same"), CELL, ("pool",),
                          options, image="triplet_id")]  # fmt: skip
    if extractors:
        shares += closer_rows(pooled, extractors, options)
    if real is not None:
        shares += manifold_rows(pooled, extractors or {}, real, options, left_out)
    rows = [row for row, _ in shares]
    for by in (AGREEING, (*AGREEING, "annotator_loc")):
        items = item_agreement(task1_answers(table, by=by), by=by, item="triplet_id", question="criterion")
        rows += agreement_rows(items, by, options.benchmark, options.confidence, {"least": options.least})
    return scored(rows, [below for _, below in shares], left_out=left_out)


def reliable_answers(annotations: pl.DataFrame, *, least: float) -> tuple[Reliable, Counter[str]]:
    """Leave out annotations of unreliable annotators, counted; who cannot be checked stays, counted too."""
    reliable = drop_unreliable(annotations, least=least)
    if not reliable.annotations.height:
        raise NothingScored(
            "no annotation is left to score", found=f"{annotations.height} before unreliable ones were left out"
        ).counting({UNRELIABLE: annotations.height})
    left_out = Counter({UNRELIABLE: annotations.height - reliable.annotations.height})
    if least > 0:
        left_out[UNCHECKED] = reliable.unchecked
    return reliable, left_out


def closer_rows(
    pooled: pl.DataFrame, extractors: Mapping[str, Features], options: Task1Options
) -> Iterator[tuple[Row, pl.DataFrame]]:
    """Make the rates of closer choices, by extractor and bin of distance, over all sources and regions."""
    choices = binned_choices(pooled, extractors, bins=options.bins).with_columns(yes="closer", source=pl.lit("all"))
    named = ("extractor", "pool", "bin", "low", "high")
    yield from share_rows("closer_choice_rate", choices, (), named, options, image="triplet_id")


def manifold_rows(
    pooled: pl.DataFrame,
    extractors: Mapping[str, Features],
    real: RealFeatures,
    options: Task1Options,
    left_out: Counter[str],
) -> Iterator[tuple[Row, pl.DataFrame]]:
    """Make the shares of appealing images that lie in the manifold of real ones."""
    if real.extractor not in extractors:
        raise UsageError(
            "the manifold needs the features of generated images, too",
            expected=f"an extractor {real.extractor!r}",
            found=", ".join(extractors) or "none",
        )
    chosen = appealing_inside(pooled, real.real, extractors[real.extractor], k=real.k)
    left_out["appeal outside combo A, or with not exactly one image inside"] += pooled.height - chosen.height
    named = chosen.with_columns(yes="inside", extractor=pl.lit(real.extractor), k=pl.lit(real.k))
    yield from share_rows("appeal_in_manifold", named, CELL, ("pool", "extractor", "k"), options, image="triplet_id")


def share_rows(
    metric: str,
    answers: pl.DataFrame,
    cell: Sequence[str],
    named: Sequence[str],
    options: Shares,
    *,
    image: str,
) -> Iterator[tuple[Row, pl.DataFrame]]:
    """Make the share of answers that are `yes` in each cell, with its values.

    Args:
        metric: the name of the score.
        answers: source, annotator_id, `yes`, and the columns named.
        cell: `region`, `object`, both or none; images without a region are in no cell of regions.
        named: columns that part the answers further and stand in params.
        options: the confidence and the benchmark.
        image: the column that names the image, or the triplet.
    """
    keys = ["source", *cell, *named]
    known = answers.filter(pl.col("region").is_not_null()) if "region" in cell else answers
    for part in known.sort(*keys, image, "annotator_id").partition_by(keys, maintain_order=True):
        head = part.row(0, named=True)
        values = part["yes"].cast(pl.Float64).to_numpy()
        clusters = {"image": part[image].to_list(), "annotator": part["annotator_id"].to_list()}
        answer = clustered_share(values, clusters, confidence=options.confidence)
        params = {**{name: head[name] for name in named}, "by": list(cell), "least": options.least}
        params = with_reason(params, answer, ONE)
        place = {
            "metric": metric, "model": head["source"], "benchmark": options.benchmark,
            "concept": head["object"] if "object" in cell else None,
            "group": head["region"] if "region" in cell else None,
        }  # fmt: skip
        items = [f"{one} by {who}" for one, who in zip(clusters["image"], clusters["annotator"], strict=True)]
        below = value_rows(place, params, pl.DataFrame({"item": items, "value": values}))
        yield statistic_row(**place, answer=answer, params=params), below


def agreement_rows(
    items: pl.DataFrame, by: Sequence[str], benchmark: str, confidence: float, extra: Mapping[str, object]
) -> Iterator[Row]:
    """Make pairwise and unanimous agreement of each cell from the shares of its items."""
    keys = [*by, "criterion", "pairs"]
    item = next(name for name in ("triplet_id", "img_path") if name in items.columns)
    for part in items.sort(*keys, item, nulls_last=True).partition_by(keys, maintain_order=True):
        head = part.row(0, named=True)
        params = {"criterion": head["criterion"], "pairs": head["pairs"], **extra}
        if "annotator_loc" in by:
            params["pool"] = head["annotator_loc"]
        shares = part["share"].to_numpy()
        pairwise = clustered_share(shares, {"item": part[item].to_list()}, confidence=confidence)
        unanimous = proportion_interval(int((shares == 1).sum()), len(shares), confidence=confidence)
        for metric, answer in (("location_agreement", pairwise), ("location_unanimity", unanimous)):
            yield statistic_row(
                metric, model=head["source"], benchmark=benchmark, answer=answer,
                params=with_reason(params, answer, "one item"), group=head["region"],
            )  # fmt: skip
