"""What simulated images really show, in the form of a mapping that never errs."""

from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.records.schemas import CSPACE, IMAGES, MATCHES
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table, write_table

__all__ = ["true_matches"]


def true_matches(work: Work, images_path: Path, cspace_path: Path) -> Outcome:
    """Write a `matches` table of the truth; a culture-free image has a row without an artifact."""
    images = read_table(images_path, IMAGES).filter(pl.col("status") == "ok")
    if "truth_artifact_id" not in images.columns:
        raise UsageError("these images do not come with the truth", where=str(images_path), expected="simulated images")
    work.progress.begin(images.height, "images")
    shown = read_table(cspace_path, CSPACE).unique(["artifact_id", "country"], maintain_order=True)
    everywhere = shown.group_by("artifact_id").agg(countries=pl.col("country").sort())
    rows = images.join(
        shown.select("artifact_id", "country", "continent", artifact="name"),
        left_on=["truth_artifact_id", "truth_country"],
        right_on=["artifact_id", "country"],
        how="left",
    ).join(everywhere, left_on="truth_artifact_id", right_on="artifact_id", how="left")
    matches = rows.select(
        "image_id", "model", "prompt_id", "concept", "repeat", "slot", "artifact", "continent",
        rank=pl.lit(1, pl.UInt16),
        artifact_id="truth_artifact_id",
        country="truth_country",
        countries=pl.col("countries").fill_null([]),
        score=pl.lit(1.0, pl.Float32),
        margin=pl.lit(1.0, pl.Float32),
        country_margin=pl.lit(1.0, pl.Float32),
        abstained=pl.col("truth_artifact_id").is_null(),
        method=pl.lit("truth"),
    ).select(list(MATCHES.columns))  # fmt: skip
    write_table(work.out, MATCHES, matches)
    work.progress.advance(images.height)
    return Outcome({"matches": matches.height, "culture_free": int(matches["abstained"].sum())})
