"""Abstention calibrated on what is known: references held out of the index, or other images that show artifacts."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.index.encoder import Vectors
from culturekit.index.folder.index_folder import OpenIndex
from culturekit.index.matching.abstention import Abstention, abstention_from, error_bounds
from culturekit.index.matching.comparison import Comparison
from culturekit.index.matching.mapping_options import Within, artifacts_within
from culturekit.index.matching.mapping_shards import TrialShard, ranges, try_shard
from culturekit.records.schemas import CALIBRATION
from culturekit.records.work import Work
from culturekit.storage.arrays import save_array
from culturekit.storage.digests import digest_bytes
from culturekit.storage.shard_runs import run_shards
from culturekit.storage.tables import merge_parts, save_parquet, write_table

__all__ = ["CONFIDENCE", "Known", "calibrate", "calibration_table", "described", "held_out", "known_images"]

CONFIDENCE = 0.95
MOST_REFERENCES = 20_000
"""References tried at most; of more, as many are drawn by the hash of their names."""


@dataclass(frozen=True, slots=True)
class Known:
    """Pictures that show known artifacts.

    Attributes:
        rows: row, artifact, in_concept and in_country of each; `row` is that of its vector.
        vectors: theirs; None where they are references of the index, by their row in its image channel.
        kind: what they are, in words.
    """

    rows: pl.DataFrame
    vectors: Vectors | None
    kind: str


def held_out(index: OpenIndex, comparison: Comparison, within: Within | None) -> Known:
    """List the references that can be held out: those of artifacts that keep another one."""
    channel = index.channels.get("image")
    if channel is None or "image" not in dict(comparison.weights):
        raise UsageError(
            "abstention is calibrated on reference pictures, and none count here",
            where=str(index.folder),
            hint="Name images that show known artifacts with --calibration.",
        )
    rows = pl.DataFrame({"row": np.arange(len(channel.owners)), "artifact": channel.owners, "source": channel.sources})
    rows = in_scope(rows, index.artifacts, comparison).filter(pl.len().over("artifact") > 1)
    if rows.is_empty():
        raise UsageError(
            "no artifact has two reference pictures, so that one could be held out",
            where=str(index.folder),
            hint="Name images that show known artifacts with --calibration.",
        )
    if rows.height > MOST_REFERENCES:
        lots = [digest_bytes(f"{artifact}\0{source}".encode()) for _, artifact, source in rows.iter_rows()]
        rows = rows.with_columns(lot=pl.Series(lots)).sort("lot").head(MOST_REFERENCES).sort("row")
    return Known(placed(rows.select("row", "artifact"), index.artifacts, within), None, "references held out")


def known_images(
    index: OpenIndex,
    images: pl.DataFrame,
    vectors: Vectors,
    comparison: Comparison,
    within: Within | None,
) -> Known:
    """List images that show an artifact of the index, but for those that are references of it themselves."""
    numbers = index.artifacts.select("artifact_id", artifact=pl.int_range(pl.len(), dtype=pl.Int64))
    rows = images.select("artifact_id").with_row_index("row").join(
        numbers, on="artifact_id", how="inner", maintain_order="left"
    )  # fmt: skip
    if "image" in index.channels:
        rows = rows.filter(~pl.Series(equal_rows(vectors[rows["row"].to_numpy()], index.channels["image"].vectors)))
    rows = in_scope(rows.select(pl.col("row").cast(pl.Int64), "artifact"), index.artifacts, comparison)
    if rows.is_empty():
        raise UsageError("no image to calibrate on shows an artifact that images are compared with")
    return Known(placed(rows, index.artifacts, within), vectors, "images of known artifacts")


def equal_rows(vectors: Vectors, others: Vectors) -> NDArray[np.bool_]:
    """Tell which vectors are exactly equal to one of the others."""
    seen = {row.tobytes() for row in vectors}
    found = {content for content in (row.tobytes() for row in others) if content in seen}
    return np.array([row.tobytes() in found for row in vectors], np.bool_)


def in_scope(rows: pl.DataFrame, artifacts: pl.DataFrame, comparison: Comparison) -> pl.DataFrame:
    """Leave out pictures of artifacts that nothing is compared with."""
    inside = artifacts_within(
        artifacts, (None, None), concepts=comparison.concepts, countries=comparison.countries
    )  # fmt: skip
    return rows.filter(pl.Series(inside[rows["artifact"].to_numpy()], dtype=pl.Boolean))


def placed(rows: pl.DataFrame, artifacts: pl.DataFrame, within: Within | None) -> pl.DataFrame:
    """Compare each picture where an image of a prompt for its artifact would be: in its first concept and country."""
    first = artifacts.select(
        in_concept=pl.col("concepts").list.first(), in_country=pl.col("countries").list.first()
    )[rows["artifact"].to_numpy()]  # fmt: skip
    nothing = pl.lit(None, pl.String)
    return rows.hstack(first).with_columns(
        in_concept=pl.col("in_concept") if within in {"concept", "both"} else nothing,
        in_country=pl.col("in_country") if within in {"country", "both"} else nothing,
    )


def calibrate(work: Work, comparison: Comparison, known: Known, *, max_error: float) -> Abstention:
    """Match pictures that show known artifacts, and choose the margin from which on matches are kept."""
    shown, vectors = work.scratch / "known.parquet", None
    save_parquet(known.rows, shown)
    if known.vectors is not None:
        vectors = work.scratch / "known.npy"
        save_array(vectors, known.vectors)
    shards = [
        TrialShard(comparison, shown, vectors, start, stop, work.scratch / f"known-{start:09d}.parquet")
        for start, stop in ranges(known.rows.height)
    ]
    run_shards(work, shards, try_shard, size=lambda shard: shard.stop - shard.start, unit=known.kind)
    tried = merge_parts([shard.part for shard in shards], {})
    return abstention_from(
        tried["margin"].to_numpy(),
        tried["wrong"].to_numpy(),
        tried["artifact"].to_numpy(),
        max_error=max_error,
        confidence=CONFIDENCE,
    )


def calibration_table(out: Path, found: Abstention, max_error: float) -> None:
    """Write the curve: what each threshold accepts, and how much of that was wrong."""
    rows = [
        {
            "threshold": point.threshold,
            "references": found.references,
            "accepted": point.accepted,
            "wrong": point.wrong,
            "error": point.wrong / point.accepted,
            "upper": point.upper,
            "max_error": max_error,
            "holds": point.holds,
            "chosen": point == found.chosen,
        }
        for point in found.curve
    ]
    write_table(out, CALIBRATION, pl.DataFrame(rows, schema=CALIBRATION.schema))


def described(found: Abstention, known: Known, max_error: float, *, images: int, accepted: int) -> dict[str, object]:
    """Say in the manifest what was promised, on what, and what it costs."""
    point = found.chosen
    notes: dict[str, object] = {
        "max_error": max_error,
        "confidence": CONFIDENCE,
        "calibrated_on": known.kind,
        "references": found.references,
        "artifacts": found.artifacts,
        "clustering": round(found.clustering, 4),
        "met": point is not None,
        "images_accepted": accepted,
        "image_coverage": round(accepted / images, 6) if images else 0.0,
        "limit": "These pictures are not the images that were mapped: what a model makes may be harder to recognise.",
    }
    if point is not None:
        bounds = error_bounds(point.wrong, point.accepted, clustering=found.clustering, confidence=CONFIDENCE)
        notes |= {
            "threshold": point.threshold,
            "accepted": point.accepted,
            "wrong": point.wrong,
            "coverage": round(point.accepted / found.references, 6),
            "error": round(point.wrong / point.accepted, 6),
            "error_low": round(bounds[0], 6),
            "error_high": round(bounds[1], 6),
        }
    return notes
