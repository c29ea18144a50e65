"""Abstention calibrated on what is known: references held out of the index, or other images that show artifacts."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.arrays import save_array
from culturekit.core.choices import CONFIDENCE
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import UsageError
from culturekit.core.schemas import CALIBRATION
from culturekit.core.stage import Work, run_shards
from culturekit.core.tables import merge_parts, save_parquet, write_table
from culturekit.index.encoder import Vectors
from culturekit.index.folder.index_folder import OpenIndex
from culturekit.index.matching.comparison import (
    Comparison,
    TrialShard,
    Within,
    artifacts_within,
    places_of,
    ranges,
    try_shard,
)

# From which margin on a match is kept, so that what is kept errs no more often than is allowed.
#
# Twenty thresholds are looked at: those that accept 5 %, 10 %, ... 100 % of the held-out references. They follow from
# the margins alone, so that whether the references were matched rightly is still open when they are fixed. For each,
# the hypothesis "what it accepts errs more often than allowed" is tested with the exact binomial tail, from the
# strictest threshold to the loosest. 1 - confidence is shared out among those that accept 25, 50, 75 and 100 %, but
# for any that could prove nothing; a rejected hypothesis hands what it had on to the next (the fallback procedure of
# Wiens and Dmitrienko, 2005). The chance that any threshold is called good that is not is at most 1 - confidence,
# however many are tried.

_THRESHOLDS = 20
_STARTS = 4


@dataclass(frozen=True, slots=True)
class _CurvePoint:
    """A threshold: how many references it accepts, how many of them were matched wrongly, and whether it holds.

    `upper` bounds the error of what it accepts from above, at the confidence for this threshold alone.
    """

    threshold: float
    accepted: int
    wrong: int
    upper: float
    holds: bool


@dataclass(frozen=True, slots=True)
class Abstention:
    """What held-out references say of the margins."""

    curve: tuple[_CurvePoint, ...]  # the thresholds, the strictest first
    chosen: _CurvePoint | None  # the loosest that holds; None where none does, and every image abstains
    references: int  # how many were held out
    artifacts: int  # of how many artifacts
    clustering: float  # as how many one independent reference counts: those of an artifact may err together

    @property
    def threshold(self) -> float:
        """The margin from which on a match is kept."""
        return float("inf") if self.chosen is None else self.chosen.threshold


def abstention_from(
    margins: NDArray[np.float32],
    wrong: NDArray[np.bool_],
    artifacts: NDArray[np.int64],
    *,
    max_error: float,
    confidence: float = CONFIDENCE,
) -> Abstention:
    """Choose the loosest margin at which held-out references show an error of at most `max_error`.

    Args:
        margins: float32 (n,), the lead of each reference's nearest artifact.
        wrong: bool (n,), whether that is another artifact than it shows.
        artifacts: int64 (n,), what each shows.
        max_error: the most that may err, of what is accepted.
        confidence: that the threshold holds, over the draw of the references.
    """
    clustering = design_effect(wrong, artifacts)
    curve: list[_CurvePoint] = []
    thresholds, carried = _candidate_thresholds(margins), 0.0
    taken = margins[:, np.newaxis] >= thresholds
    levels = _first_levels(taken.sum(axis=0), max_error, 1 - confidence)
    for number, threshold in enumerate(thresholds.tolist()):
        accepted, errors = int(taken[:, number].sum()), int((taken[:, number] & wrong).sum())
        level = levels[number] + carried
        holds = tail(errors / clustering, accepted / clustering, max_error) <= level
        carried = level if holds else 0.0
        upper = error_bounds(errors, accepted, clustering=clustering, confidence=2 * confidence - 1)[1]
        curve.append(_CurvePoint(threshold, accepted, errors, upper, holds))
    chosen = next((point for point in reversed(curve) if point.holds), None)
    return Abstention(tuple(curve), chosen, len(margins), len(np.unique(artifacts)), clustering)


def _candidate_thresholds(margins: NDArray[np.float32]) -> NDArray[np.float32]:
    """Give the margins that accept equal shares of the references, the strictest first; the last accepts all."""
    if not len(margins):
        return np.empty(0, np.float32)
    falling = np.sort(margins)[::-1]
    places = -(-len(falling) * np.arange(1, _THRESHOLDS) // _THRESHOLDS) - 1
    return np.unique(np.append(falling[np.maximum(places, 0)], np.float32(0)))[::-1]


def _first_levels(accepted: NDArray[np.int64], max_error: float, level: float) -> NDArray[np.float64]:
    """Share a level out among the thresholds where testing begins; where even no error would prove nothing, none."""
    starts = np.unique(-(-len(accepted) * np.arange(1, _STARTS + 1) // _STARTS) - 1)
    starts = starts[(1 - max_error) ** accepted[starts] <= level] if len(accepted) else starts[:0]
    shares = np.zeros(len(accepted))
    shares[starts] = level / max(len(starts), 1)
    return shares


def tail(errors: float, accepted: float, rate: float) -> float:
    """Give the chance of so few errors or fewer where a share of `rate` errs."""
    from scipy.special import betainc

    if accepted <= 0 or errors >= accepted:
        return 1.0
    return float(betainc(accepted - errors, errors + 1, 1 - rate))


def error_bounds(
    errors: float, accepted: float, *, clustering: float = 1.0, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Give the exact two-sided interval of an error rate (Clopper-Pearson), references counted by their worth."""
    from scipy.special import betaincinv

    errors, accepted = errors / clustering, accepted / clustering
    side = (1 - confidence) / 2
    lower = 0.0 if errors == 0 else float(betaincinv(errors, accepted - errors + 1, side))
    upper = 1.0 if errors >= accepted else float(betaincinv(errors + 1, accepted - errors, 1 - side))
    return lower, upper


def design_effect(wrong: NDArray[np.bool_], artifacts: NDArray[np.int64]) -> float:
    """Measure how much less references say that err together with others of their artifact; 1 if they do not.

    It is the variance of the error rate over artifacts, against that of as many independent references
    (Korn and Graubard, 1998).
    """
    count, rate = len(wrong), float(wrong.mean()) if len(wrong) else 0.0
    group = np.unique(artifacts, return_inverse=True)[1]
    groups = int(group.max(initial=-1)) + 1
    if groups < 2 or rate in {0.0, 1.0}:
        return 1.0
    excess = np.bincount(group, weights=wrong.astype(np.float64) - rate)
    between = groups / (groups - 1) * float((excess**2).sum()) / count**2
    return max(1.0, between / (rate * (1 - rate) / count))


_MOST_REFERENCES = 20_000  # references tried at most; of more, as many are drawn by the hash of their names


@dataclass(frozen=True, slots=True)
class Known:
    """Pictures that show known artifacts."""

    rows: pl.DataFrame  # row, artifact, in_concept and in_country of each; `row` is that of its vector
    vectors: Vectors | None  # theirs; None where they are references of the index, by their row in its image channel
    kind: str  # what they are, in words


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
    rows = _in_scope(rows, index.artifacts, comparison).filter(pl.len().over("artifact") > 1)
    if rows.is_empty():
        raise UsageError(
            "no artifact has two reference pictures, so that one could be held out",
            where=str(index.folder),
            hint="Name images that show known artifacts with --calibration.",
        )
    if rows.height > _MOST_REFERENCES:
        lots = [digest_bytes(f"{artifact}\0{source}".encode()) for _, artifact, source in rows.iter_rows()]
        rows = rows.with_columns(lot=pl.Series(lots)).sort("lot").head(_MOST_REFERENCES).sort("row")
    return Known(_placed(rows.select("row", "artifact"), index.artifacts, within), None, "references held out")


def known_images(
    index: OpenIndex, images: pl.DataFrame, vectors: Vectors, comparison: Comparison, within: Within | None
) -> Known:
    """List images that show an artifact of the index, but for those that are references of it themselves."""
    numbers = index.artifacts.select("artifact_id", artifact=pl.int_range(pl.len(), dtype=pl.Int64))
    rows = images.select("artifact_id").with_row_index("row").join(
        numbers, on="artifact_id", how="inner", maintain_order="left"
    )  # fmt: skip
    if "image" in index.channels:
        rows = rows.filter(~pl.Series(equal_rows(vectors[rows["row"].to_numpy()], index.channels["image"].vectors)))
    rows = _in_scope(rows.select(pl.col("row").cast(pl.Int64), "artifact"), index.artifacts, comparison)
    if rows.is_empty():
        raise UsageError("no image to calibrate on shows an artifact that images are compared with")
    return Known(_placed(rows, index.artifacts, within), vectors, "images of known artifacts")


def equal_rows(vectors: Vectors, others: Vectors) -> NDArray[np.bool_]:
    """Tell which vectors are exactly equal to one of the others."""
    seen = {row.tobytes() for row in vectors}
    found = {content for content in (row.tobytes() for row in others) if content in seen}
    return np.array([row.tobytes() in found for row in vectors], np.bool_)


def _in_scope(rows: pl.DataFrame, artifacts: pl.DataFrame, comparison: Comparison) -> pl.DataFrame:
    """Leave out pictures of artifacts that nothing is compared with."""
    inside = artifacts_within(
        artifacts, (None, None), concepts=comparison.concepts, countries=comparison.countries
    )  # fmt: skip
    return rows.filter(pl.Series(inside[rows["artifact"].to_numpy()], dtype=pl.Boolean))


def _placed(rows: pl.DataFrame, artifacts: pl.DataFrame, within: Within | None) -> pl.DataFrame:
    """Compare each picture where an image of a prompt for its artifact would be: in its first concept and country."""
    first = artifacts.select(concept=pl.col("concepts").list.first(), country=pl.col("countries").list.first())
    placed = places_of(rows.hstack(first[rows["artifact"].to_numpy()]), within)
    return placed.select(*rows.columns, "in_concept", "in_country")


def calibrate(work: Work, comparison: Comparison, known: Known, *, max_error: float) -> Abstention:
    """Match pictures that show known artifacts, and choose the margin from which on matches are kept."""
    found = tried(work, comparison, known)
    truth = found["artifact"].to_numpy()
    wrong = found["nearest"].to_numpy() != truth
    return abstention_from(found["margin"].to_numpy(), wrong, truth, max_error=max_error, confidence=CONFIDENCE)


def tried(work: Work, comparison: Comparison, known: Known) -> pl.DataFrame:
    """Match pictures that show known artifacts: `artifact`, `nearest`, both by number, `score` and `margin` of each."""
    shown, vectors = work.scratch / "known.parquet", None
    save_parquet(known.rows, shown)
    if known.vectors is not None:
        vectors = work.scratch / "known.npy"
        save_array(vectors, known.vectors)
    shards = [
        TrialShard(comparison, shown, vectors, start, stop, work.scratch / f"tried-{start:09d}.parquet")
        for start, stop in ranges(known.rows.height)
    ]
    run_shards(work, shards, try_shard, size=lambda shard: shard.stop - shard.start, unit=known.kind)
    return merge_parts([shard.part for shard in shards], {})


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
