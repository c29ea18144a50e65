"""Quality, audits, and what machines say of single images: within what there can be, and as other tables have it."""

import json
import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.score_rows import close

__all__ = ["check_audits", "check_image_values", "check_quality", "range_of"]

RANGES = {
    "embedded": (0.0, 1.0),
    "hpsv2": (-1.0, 1.0),
    "clipscore": (0.0, 100.0),
    "pickscore": (-100.0, 100.0),
}
"""The lowest and the highest value of a scorer, by how its name begins."""

EDGE = 1e-6

VALUES = "values"
OF_MATCHES = {"similarity": "score", "margin": "margin", "country_margin": "country_margin"}


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


def check_image_values(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Look the values of a stage that holds metrics against people up again."""
    path, where = stage.folder / "values.parquet", f"{stage.name}/values.parquet"
    if not path.is_file():
        return
    sources = tree.inputs_of(stage)
    if sources is None:
        ledger.note(VALUES, stage.name, "the tables behind its values are not here: not verifiable")
        return
    rows: dict[str, list[dict[str, Any]]] = {"quality": [], "matches": []}
    for role, place in sources.items():
        if role.partition("-")[0] in rows:
            rows[role.partition("-")[0]] += pl.read_parquet(place).iter_rows(named=True)
    prompts = sources.get("prompts")
    asked = {} if prompts is None else dict(pl.read_parquet(prompts).select("prompt_id", "country").iter_rows())
    expected = said_of_images(rows["quality"], rows["matches"], asked)
    for row in pl.read_parquet(path).iter_rows(named=True):
        key = (row["metric"], json.loads(row["params"]).get("scorer"), row["item"])
        if key not in expected or not close(row["value"], expected[key]):
            ledger.broken(
                VALUES, f"{where} ({row['metric']}, {row['item']})", "is not what the tables of the image say",
                expected=expected.get(key), found=row["value"],
            )  # fmt: skip
        ledger.count("values of images held against people")


def said_of_images(
    quality: list[dict[str, Any]], matches: list[dict[str, Any]], asked: Mapping[str, str | None]
) -> dict[tuple[str, str | None, str], float | None]:
    """Gather what tables say of images, by metric, scorer and image."""
    found: dict[tuple[str, str | None, str], float | None] = {
        ("quality", row["scorer"], row["image_id"]): row["value"] for row in quality
    }
    for row in matches:
        if row["rank"] != 1:
            continue
        image = row["image_id"]
        for metric, column in OF_MATCHES.items():
            found[metric, None, image] = row[column]
        wanted = asked.get(row["prompt_id"])
        same = wanted in {row["country"], *row["countries"]}
        found["mapped_as_asked", None, image] = None if row["abstained"] else float(same)
    return found
