"""Quality and audits: values within what a scorer can give, of the images there are, labels of the cultural space."""

import math

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree

__all__ = ["check_audits", "check_quality", "range_of"]

RANGES = {
    "embedded": (0.0, 1.0),
    "hpsv2": (-1.0, 1.0),
    "clipscore": (0.0, 100.0),
    "pickscore": (-100.0, 100.0),
}
"""The lowest and the highest value of a scorer, by how its name begins."""

EDGE = 1e-6


def range_of(scorer: str) -> tuple[float, float]:
    """Give what a scorer can give; anything for one that is not known here."""
    return next((limits for name, limits in RANGES.items() if scorer.startswith(name)), (-math.inf, math.inf))


def check_quality(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Compare a table of quality with its images: the values themselves are a model's, and are not recomputed."""
    where = f"{stage.name}/quality.parquet"
    table = pl.read_parquet(stage.folder / "quality.parquet")
    for scorer, image, value in table.select("scorer", "image_id", "value").iter_rows():
        low, high = range_of(scorer)
        if not low - EDGE <= value <= high + EDGE:
            ledger.broken(
                "quality", where, f"the quality of image {image} is out of range", expected=f"{low} to {high}",
                found=value,
            )  # fmt: skip
            break
    ledger.count("quality values in range", table.height)
    path = tree.source(stage, "images")
    if path is None:
        ledger.note("quality", stage.name, "its images are not here")
        return
    images = pl.read_parquet(path).filter(pl.col("status") == "ok")
    drops = stage.folder / "drops.parquet"
    lost = set(pl.read_parquet(drops)["key"]) if drops.is_file() else set()
    wanted, rated = set(images["image_id"]) - lost, set(table["image_id"])
    if wanted != rated or table.select("scorer", "image_id").is_duplicated().any():
        ledger.broken(
            "quality", where, "other images have a quality than were made", expected=f"{len(wanted):,}",
            found=f"{len(wanted - rated):,} without one, {len(rated - wanted):,} unknown",
        )  # fmt: skip


def check_audits(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Look at a simulated audit: each answer is of a sampled image and names what there is."""
    matches, space = tree.source(stage, "matches"), tree.source(stage, "cspace")
    audits = pl.read_parquet(stage.folder / "audits.parquet").to_dicts()
    sample = set(pl.read_parquet(stage.folder / "audit_sample.parquet")["image_id"])
    if matches is None or space is None:
        ledger.note("audits", stage.name, "its matches or cultural space are not here")
        return
    known = set(pl.read_parquet(matches)["image_id"])
    places = set(pl.read_parquet(space).select("artifact_id", "country", "continent").iter_rows())
    check_answers(stage, audits, sample, known, places, ledger)
    check_perfect_raters(tree, stage, audits, ledger)


def check_answers(
    stage: FinishedStage,
    audits: list[dict[str, object]],
    sample: set[str],
    known: set[str],
    places: set[tuple[object, ...]],
    ledger: Ledger,
) -> None:
    """Compare answers with the sample, the matches and the cultural space."""
    where = f"{stage.name}/audits.parquet"
    ledger.count("audit answers", len(audits))
    if not sample <= known or {row["image_id"] for row in audits} != sample:
        ledger.broken("audits", where, "the images audited are not the ones that were drawn", expected=len(sample))
    for row in audits:
        place = (row["artifact_id"], row["country"], row["continent"])
        if not row["none_of_these"] and place not in places:
            ledger.broken(
                "audits", where, f"image {row['image_id']} is said to show what is not in the cultural space",
                found=place,
            )  # fmt: skip
            break


def check_perfect_raters(tree: RunTree, stage: FinishedStage, audits: list[dict[str, object]], ledger: Ledger) -> None:
    """Compare the answers of simulated raters who never err with the truth."""
    truth = tree.source(stage, "truth")
    if truth is None or stage.manifest.options.get("accuracy") != 1.0:
        return
    shown = {
        image: (artifact, country)
        for image, artifact, country in pl.read_parquet(truth).select("image_id", "artifact_id", "country").iter_rows()
    }
    for row in audits:
        said = (None, None) if row["none_of_these"] else (row["artifact_id"], row["country"])
        if shown.get(str(row["image_id"]), ("?", "?")) != said:
            ledger.broken(
                "audits", f"{stage.name}/audits.parquet",
                f"raters who never err say of image {row['image_id']} what it does not show",
                expected=shown.get(str(row["image_id"])), found=said,
            )  # fmt: skip
            break
