"""How unlike the images of a batch look, as cosines of vectors and as a perceptual distance: what stands beside VS."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.core.choices import BATCH_SIZE, CONFIDENCE
from culturekit.core.declared import check_options
from culturekit.core.digests import digest_file
from culturekit.core.errors import UsageError
from culturekit.core.registry import check_ready, parse_spec, spec_state
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.table import check_slots
from culturekit.index.raters.picture_spread import PAIR_MEASURES, measure_spread
from culturekit.metrics.diversity.label_diversity import mean_cosine
from culturekit.metrics.realism.features import licence_of
from culturekit.metrics.statistics.intervals import Target
from culturekit.scores.catalog import describe
from culturekit.scores.diversity import MEAN_QUALITY
from culturekit.scores.family import (
    Row,
    Scored,
    mean_over_repeats,
    parts_by_concept,
    repeats_in,
    scored,
    scores,
    statistic_row,
    value_rows,
    with_reason,
)
from culturekit.scores.image_levels import MeanOptions, placed
from culturekit.scores.inputs import ImageTables, LabelledVectors, PairFolders, VectorFolders

FEW_REPEATS = "a prompt with one repeat does not say how much it scatters"
NO_PROMPT = "images that name no prompt or repeat"
INCOMPLETE = "images of an incomplete batch"

Size = Annotated[int, Field(ge=2, description="Images per batch, as of VS.")]


_SPREAD_INPUTS = ("images: image_id, model, prompt_id, repeat, slot, concept",)

_SPREAD_PITFALLS = (
    "It knows what images look like, not what they show: eight dishes of one country photographed in eight ways are "
    "varied to it, eight countries drawn in one style are not. Read it beside vs.",
    "Noise looks unlike noise: images that show nothing can be the most varied of all.",
)

MEAN_COSINE = describe(
    "mean_cosine",
    "Mean cosine within a batch (called coverage on CUBE's slides)",
    "(1/N^2) sum over all i, j of cos(x_i, x_j), the diagonal included, per batch of N = 8, averaged like vs",
    paper=MEAN_QUALITY.paper,
    inputs=(*_SPREAD_INPUTS, "a folder of vectors of the images"),
    pitfalls=(
        "It has nothing to do with the coverage of PRDC (prdc_coverage). Low values mean varied images.",
        "The diagonal adds 1/N: compare values of the same batch size only. Encoders differ in how near to 1 all "
        "cosines lie: compare values of one encoder only.",
        *_SPREAD_PITFALLS,
    ),
    direction="lower",
    unit="cosine",
    licence="that of the encoder named in params.encoder",
)

MEAN_LPIPS = describe(
    "mean_lpips",
    "Mean LPIPS within a batch",
    "mean over the N(N-1)/2 pairs of a batch of N = 8 of LPIPS(x_i, x_j), averaged like vs",
    paper="Zhang et al. 2018, The Unreasonable Effectiveness of Deep Features as a Perceptual Metric",
    inputs=(*_SPREAD_INPUTS, "pair_distances: measure, model, prompt_id, repeat, batch, distance"),
    pitfalls=(
        "Networks (AlexNet, VGG-16, SqueezeNet) and the size of the pictures give different numbers: params.measure "
        "says which, and only scores of one measure compare.",
        *_SPREAD_PITFALLS,
    ),
    high=float("inf"),
    direction="higher",
    unit="distance",
    licence="that of the weights named in params.measure (published heads: BSD-2-Clause)",
)


def _with_weights(stage: Stage, given: Mapping[str, Any]) -> Stage:
    """Make what stands behind the SPEC part of the stage, and look for it before the first stage of a run."""
    measure = given["measure"]
    PAIR_MEASURES.check(measure)
    backbone = parse_spec(measure).options.get("backbone", "")
    beside = {"backbone": digest_file(Path(backbone))} if backbone and Path(backbone).is_file() else {}
    options = {**stage.options, **spec_state(PAIR_MEASURES, measure), **beside}
    return replace(stage, options=options, before=partial(check_ready, PAIR_MEASURES, measure))


@scores(
    "pairs", kind="pair-distances", folder="pairs", packages=("numpy", "pillow", "polars"), amend=_with_weights,
    example="--images images/images.parquet --measure lpips:lpips.safetensors --out pairs", workers=True, engine=True,
)  # fmt: skip
def pairs(
    work: Work,
    images: Annotated[Path, Field(description="Images table: model, prompt, repeat, slot.")],
    *,
    measure: Annotated[
        str, Field(description="Who measures, as a SPEC: lpips:FILE, or lpips:HEADS?backbone=FILE (safetensors).")
    ],
    size: Size = BATCH_SIZE,
) -> Outcome:
    """Measure how far apart every two pictures of a batch are.

    The mean over the batch is what `score spread` takes.
    """
    return measure_spread(work, images, measure, size=size)


@dataclass(frozen=True, slots=True)
class SpreadOptions:
    """How it is scored."""

    size: Size = BATCH_SIZE
    target: Annotated[
        Target, Field(description="Intervals speak about these prompts, or about all that at least 20 stand for.")
    ] = "these"
    confidence: Annotated[float, Field(gt=0, lt=1, description="How often intervals are to hold the truth.")] = (
        CONFIDENCE
    )
    benchmark: str = "spread"


def _something(vectors: VectorFolders, distances: PairFolders, **_: object) -> None:
    """Refuse files of which nothing can be scored."""
    if not vectors and not distances:
        raise UsageError(
            "nothing says how unlike the images are", expected="a folder of vectors, or one of distances of pairs"
        )


@scores(
    "spread", MEAN_COSINE, MEAN_LPIPS, version=2, settle=_something,
    example="--images images/images.parquet --vectors vectors --distances pairs --out scores",
    # finished folders are known by these two as well
    amend=lambda stage, _: replace(stage, options={**stage.options, "encoder": {}, "measures": {}}),
)  # fmt: skip
def spread(
    work: Work,
    images: Annotated[ImageTables, Field(description="Images table: model, prompt, repeat, slot; repeatable.")],
    vectors: Annotated[
        VectorFolders, Field(description="Folder of vectors of these images; adds the mean cosine; repeatable.")
    ] = VectorFolders(),
    distances: Annotated[
        PairFolders, Field(description="Folder that `score pairs` wrote; adds mean LPIPS; repeatable.")
    ] = PairFolders(),
    prompts: Annotated[Path | None, Field(description="Prompts of the images, where their table lacks the object.")] = (
        None
    ),
    *,
    options: SpreadOptions = SpreadOptions(),
) -> Scored:
    """Score how unlike the images of a batch look.

    Mean cosine and mean LPIPS, to be read beside VS.
    """
    distances.check_images(images)
    return score_spread(
        images.table(prompts, work.scratch),
        vectors.vectors(work.scratch),
        distances.table(),
        options=options,
        encoder=vectors.encoder,
        measures=distances.measures,
    )


NOTHING: Mapping[str, Any] = MappingProxyType({})


def score_spread(
    images: pl.DataFrame,
    vectors: LabelledVectors | None = None,
    distances: pl.DataFrame | None = None,
    *,
    options: SpreadOptions,
    encoder: Mapping[str, Any] = NOTHING,
    measures: Mapping[str, Mapping[str, Any]] = NOTHING,
) -> Scored:
    """Score every model on each concept, and over all where there are several.

    Within a repeat of a prompt, images in the order of their slots make batches, as for VS; incomplete ones enter no
    score. A score is averaged over the batches of a repeat, then over repeats, then over prompts; the means of the
    repeats are its values.
    """
    check_options(options)
    check_slots(images.filter(pl.col("status") == "ok"))
    left_out: Counter[str] = Counter()
    tables: list[tuple[str, pl.DataFrame, dict[str, object]]] = []
    if vectors is not None:
        base: dict[str, object] = {"encoder": dict(encoder), "licence": licence_of(encoder), "size": options.size}
        tables.append(("mean_cosine", batch_cosines(images, vectors, options.size, left_out), base))
    if distances is not None:
        other = distances.filter(pl.col("images") != options.size)
        left_out[f"images of batches of another size than {options.size}"] += int(other["images"].sum())
        full = own_batches(distances.filter(pl.col("images") == options.size), images, options.size, left_out)
        for (measure,), part in full.group_by("measure", maintain_order=True):
            base = {"measure": dict(measures.get(str(measure), {"name": measure})), "size": options.size}
            tables.append(("mean_lpips", part.rename({"distance": "value"}), base))
    scores: list[Row] = []
    values: list[pl.DataFrame] = []
    for metric, batches, base in tables:
        for scope, part in parts_by_concept(batches):
            score, value_table = answer(metric, scope, part, base, options)
            scores.append(score)
            values.append(value_table)
    return scored(scores, values, left_out=left_out)


def own_batches(distances: pl.DataFrame, images: pl.DataFrame, size: int, left_out: Counter[str]) -> pl.DataFrame:
    """Keep the distances of batches of these images, and count the others, and the images of which there is none."""
    key = ["model", "prompt_id", "repeat"]
    ready = images.filter(pl.col("status") == "ok").drop_nulls(["prompt_id", "repeat"])
    batches = ready.group_by(key).agg(batches=pl.len() // size)
    joined = distances.join(batches, on=key, how="left", maintain_order="left")
    known = joined.filter(pl.col("batch") < pl.col("batches"))
    left_out["images of distances that are in no table of images"] += int((distances.height - known.height) * size)
    measured = known.group_by("measure", *key).len()
    for measure in measured["measure"].unique().sort():
        lacking = int(batches["batches"].sum()) - int(measured.filter(measure=measure)["len"].sum())
        left_out[f"images without a distance by {measure}"] += lacking * size
    return known.drop("batches")


def batch_cosines(images: pl.DataFrame, vectors: LabelledVectors, size: int, left_out: Counter[str]) -> pl.DataFrame:
    """Give the mean cosine of each full batch: model, concept, prompt_id, repeat, images, value."""
    known = placed(vectors.ids, images, MeanOptions(groups={}), what="vectors", left_out=left_out)
    left_out["images without a vector"] += images.height - known.height
    slots = images.select("image_id", "slot")
    ordered = known.join(slots, on="image_id", how="left").drop_nulls(["prompt_id", "repeat"])
    left_out[NO_PROMPT] += known.height - ordered.height
    ordered = ordered.sort("model", "prompt_id", "repeat", "slot", "image_id")
    rows = []
    for (model, prompt, repeat), part in ordered.group_by("model", "prompt_id", "repeat", maintain_order=True):
        places = part["row"].to_numpy()
        full = len(places) // size
        left_out[INCOMPLETE] += len(places) - full * size
        for number in range(full):
            batch = np.asarray(vectors.vectors[places[number * size : (number + 1) * size]])
            rows.append((model, part["concept"][0], prompt, repeat, size, mean_cosine(batch)))
    names = {"model": pl.String, "concept": pl.String, "prompt_id": pl.String, "repeat": pl.UInt16}
    return pl.DataFrame(rows, {**names, "images": pl.UInt32, "value": pl.Float64}, orient="row")


def answer(
    metric: str, scope: Row, batches: pl.DataFrame, base: Mapping[str, object], options: SpreadOptions
) -> tuple[Row, pl.DataFrame]:
    """Average the batches over repeats and prompts, and write score and values."""
    ordered = batches.sort("prompt_id", "repeat", maintain_order=True)
    repeats = repeats_in(ordered)
    found, means = mean_over_repeats(
        ordered["value"].to_numpy(), repeats.of_row, repeats, target=options.target, confidence=options.confidence
    )
    params: dict[str, object] = {
        **base, "target": options.target, "confidence": options.confidence, "prompts": len(set(repeats.prompts)),
    }  # fmt: skip
    params = with_reason(params, found, FEW_REPEATS)
    about = {**scope, "benchmark": options.benchmark, "metric": metric}
    entered = replace(found, n=int(batches["images"].sum()))
    return statistic_row(**about, answer=entered, params=params), value_rows(about, params, repeats.values(means))
