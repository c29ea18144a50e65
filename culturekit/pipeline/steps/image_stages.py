"""The stages that say what an image truly shows, and what simulated people who audit say of it."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl

from culturekit.config.recipe_parts import Audit
from culturekit.errors import UsageError
from culturekit.families.handles.public_files import space_table
from culturekit.index.raters.simulated_raters import simulated_audits
from culturekit.metrics.corrected.audit_sampling import audit_sample
from culturekit.records.schemas import AUDIT_SAMPLE, AUDITS, CSPACE, IMAGES, MATCHES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table, write_table

__all__ = ["simulated_audit_stage", "truth_stage"]

CAVEAT = "The audit was made by simulated raters, who know what the simulated models drew."


def truth_stage(images: Path, cspace: Path, *, name: str = "truth") -> Stage:
    """Write down what simulated images really show."""
    inputs = {"images": images, "cspace": cspace}
    return Stage(
        name,
        "truth",
        1,
        lambda work: true_matches(work, images, space_table(cspace, work.scratch)),
        inputs,
        packages=("polars",),
    )


def simulated_audit_stage(matches: Path, truth: Path, cspace: Path, audit: Audit, *, seed: int) -> Stage:
    """Draw images, and have simulated raters label them."""

    def run(work: Work) -> Outcome:
        sample = audit_sample(read_table(matches, MATCHES), n=audit.images, rng=np.random.default_rng(seed))
        said = simulated_audits(
            read_table(truth, MATCHES),
            read_table(cspace, CSPACE),
            sample["image_id"].to_list(),
            audit.raters,
            seed=seed,
        )
        write_table(work.out, AUDIT_SAMPLE, sample)
        write_table(work.out, AUDITS, said)
        return Outcome({"audit_sample": sample.height, "audits": said.height}, notes={"caveat": CAVEAT})

    inputs = {"matches": matches, "truth": truth, "cspace": cspace}
    options = {"images": audit.images, **asdict(audit.raters)}
    return Stage("audit", "simulated-audit", 4, run, inputs, options, {"audit": seed})


def true_matches(work: Work, images_path: Path, cspace_path: Path) -> Outcome:
    """Write the truth as a mapping that never errs; a culture-free image has a row without an artifact."""
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
