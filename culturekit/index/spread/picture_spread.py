"""How far the pictures of a batch are apart: a measure of pairs over a table of images, in resumable shards."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.atomic import explained_outside
from culturekit.core.defaults import BATCHES_PER_SHARD
from culturekit.core.digests import digest
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.plugins import Contract, hold
from culturekit.core.registry import Entry, Registry
from culturekit.core.schemas import IMAGES, PAIR_DISTANCES
from culturekit.core.stage_folder import run_shards, seal
from culturekit.core.table import check_slots
from culturekit.core.tables import merge_parts, read_table, save_parquet, write_table
from culturekit.core.work import Outcome, Work
from culturekit.index.embedding.embedding import try_picture
from culturekit.index.encoder import Prepared
from culturekit.index.raters.quality import in_threads

# What a measure of pairs is: the pictures of a batch in, how far every two of them are apart out.


class PairMeasure(Protocol):
    """Says how far pictures are apart.

    Preparing and measuring are apart, as with encoders, so that no more than a batch of small pictures is in memory.
    """

    @property
    def name(self) -> str:
        """The measure's name as it stands in tables."""

    @property
    def caveat(self) -> str:
        """What a reader must know about this measure; empty when nothing."""

    @property
    def licence(self) -> str:
        """Of the weights."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Everything that decides a value: weights (`none`, or their hash), preprocessing, and constants."""

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Bring a picture, uint8 (height, width, 3), to the form that is measured."""

    def distances(self, pictures: Sequence[Prepared]) -> NDArray[np.float64]:
        """Measure every two pictures of a batch, float64 (n, n): symmetric, zeros on the diagonal."""


# The measures of pairs of pictures that culturekit knows by name.


def distances(_: object, answer: object, pictures: Sequence[object]) -> NDArray[np.float64]:
    """Take a finite distance of every two pictures."""
    shape = (len(pictures), len(pictures))
    kind = f"{answer.dtype} {answer.shape}" if isinstance(answer, np.ndarray) else type(answer).__name__
    fits = isinstance(answer, np.ndarray) and answer.dtype.kind == "f" and answer.shape == shape
    hold(fits, f"float64 {shape}", kind)
    found: NDArray[np.float64] = np.asarray(answer)
    hold(bool((np.isfinite(found) & (found >= 0)).all()), "finite numbers of at least 0", "others")
    hold(bool((np.diag(found) == 0).all()), "zeros on the diagonal", "others")
    hold(bool(np.allclose(found, found.T)), "one distance both ways", "two")
    return found


_MEASURE = Contract(
    (PairMeasure,), answers={"distances": distances}, says=lambda measure: {"parameters": dict(measure.parameters)}
)

PAIR_MEASURES: Registry[PairMeasure] = Registry(
    "measure of pairs",
    [
        Entry(
            "lpips",
            "culturekit.index.spread.lpips_measure:make",
            "LPIPS on AlexNet, VGG-16 or SqueezeNet: lpips:FILE, or lpips:HEADS?backbone=FILE, both safetensors",
            options="culturekit.index.spread.lpips_measure:Options",
            extra="embed",
            packages=("torch",),
        )
    ],
    point="measure",
    contract=_MEASURE,
)


_UNREADABLE = "images of a batch with a picture that cannot be read: "
# a row has a distance, or the reason why there is none; then the distance is NaN
_PART = {**PAIR_DISTANCES.schema, "reason": pl.String()}
_NO_PROMPT = "images that name no prompt or repeat"
_INCOMPLETE = "images of an incomplete batch"


@dataclass(frozen=True, slots=True)
class _RepeatBatch:
    """One full batch: where it stands, and path and hash of each picture."""

    model: str
    concept: str | None
    prompt_id: str
    repeat: int
    number: int
    pictures: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _SpreadShard:
    """A run of batches to measure, as a work item."""

    measure: str
    root: Path
    batches: tuple[_RepeatBatch, ...]
    part: Path


def measure_spread(work: Work, images_path: Path, measure: str, *, size: int) -> Outcome:
    """Write the mean distance over all pairs of each full batch; a batch with an unreadable picture has none."""
    made = PAIR_MEASURES.kept(measure)
    batches, left_out = repeat_batches(read_table(images_path, IMAGES), size)
    rows = _measured(work, batches, images_path.parent, measure)
    lost = rows.filter(pl.col("reason").is_not_null())
    for reason, count in lost.group_by("reason").agg(pl.col("images").sum()).sort("reason").iter_rows():
        left_out[f"{_UNREADABLE}{reason}"] += count
    table = rows.filter(pl.col("reason").is_null()).select(list(PAIR_DISTANCES.schema))
    write_table(work.out, PAIR_DISTANCES, table)
    notes = {"caveat": made.caveat, "parameters": dict(made.parameters), "licence": made.licence}
    counts = {"pair_distances": table.height, "images": int(table["images"].sum())}
    return Outcome(counts, +left_out, notes)


def _measured(work: Work, batches: Sequence[_RepeatBatch], root: Path, measure: str) -> pl.DataFrame:
    """Measure batches shard by shard; those of a cut run are not measured again."""
    parameters = dict(PAIR_MEASURES.kept(measure).parameters)
    mark = digest(parameters)[:16]
    shards = [
        _SpreadShard(
            measure,
            root,
            tuple(batches[start : start + BATCHES_PER_SHARD]),
            work.scratch / f"spread-{mark}-{start:09d}.parquet",
        )
        for start in range(0, len(batches), BATCHES_PER_SHARD)
    ]
    hands = None if parameters.get("weights") == "none" else partial(in_threads, workers=work.engine.workers)
    run_shards(work, shards, _measure_shard, size=lambda shard: len(shard.batches), unit="batches", hands=hands)
    return merge_parts([shard.part for shard in shards], _PART)


def _measure_shard(shard: _SpreadShard) -> int:
    """Measure a run of batches and keep a row for each."""
    measure = PAIR_MEASURES.kept(shard.measure)
    rows = []
    for batch in shard.batches:
        with explained_outside(f"the measure {shard.measure}"):
            distance, reason = _distance_of(batch, shard.root, measure)
        place = (batch.model, batch.concept, batch.prompt_id, batch.repeat, batch.number, len(batch.pictures))
        rows.append((measure.name, *place, distance, reason))
    save_parquet(pl.DataFrame(rows, _PART, orient="row"), shard.part)
    seal(shard.part)
    return len(shard.batches)


def _distance_of(batch: _RepeatBatch, root: Path, measure: PairMeasure) -> tuple[float, str | None]:
    """Average the distances of all pairs of a batch, or say why there is none."""
    ready = []
    for path, sha256 in batch.pictures:
        found = try_picture(root, path, sha256=sha256)
        if isinstance(found, NoPicture):
            return float("nan"), found.reason
        ready.append(measure.prepare(found))
    distances, count = measure.distances(ready), len(ready)
    return float(distances.sum() / (count * (count - 1))), None


def repeat_batches(images: pl.DataFrame, size: int) -> tuple[list[_RepeatBatch], Counter[str]]:
    """Cut images that have a picture into full batches, and count the images that are in none."""
    left_out: Counter[str] = Counter()
    ready = images.filter(pl.col("status") == "ok")
    left_out["images without a picture"] += images.height - ready.height
    check_slots(ready)
    placed = ready.drop_nulls(["prompt_id", "repeat"])
    left_out[_NO_PROMPT] += ready.height - placed.height
    concept = [] if "concept" in placed.columns else [pl.lit(None, pl.String).alias("concept")]
    ordered = placed.with_columns(concept).sort("model", "prompt_id", "repeat", "slot", "image_id")
    batches: list[_RepeatBatch] = []
    for (model, prompt, repeat), rows in ordered.group_by("model", "prompt_id", "repeat", maintain_order=True):
        pictures = tuple(rows.select("path", "sha256").iter_rows())
        full = len(pictures) // size
        left_out[_INCOMPLETE] += len(pictures) - full * size
        for number in range(full):
            own = pictures[number * size : (number + 1) * size]
            batches.append(_RepeatBatch(str(model), rows["concept"][0], str(prompt), int(str(repeat)), number, own))
    return batches, left_out
