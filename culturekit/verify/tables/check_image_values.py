"""What machines say of single images, as values beside correlations: held against the tables that say it."""

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.score_rows import close

__all__ = ["check_image_values"]

CHECK = "values"
OF_MATCHES = {"similarity": "score", "margin": "margin", "country_margin": "country_margin"}


def check_image_values(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Look the values of a stage that holds metrics against people up again."""
    path, where = stage.folder / "values.parquet", f"{stage.name}/values.parquet"
    if not path.is_file():
        return
    sources = {role: tree.source(stage, role) for role in stage.manifest.inputs}
    if any(place is None for place in sources.values()):
        ledger.note(CHECK, stage.name, "the tables behind its values are not here: not verifiable")
        return
    rows: dict[str, list[dict[str, Any]]] = {"quality": [], "matches": []}
    for role, place in sources.items():
        if place is not None and role.partition("-")[0] in rows:
            rows[role.partition("-")[0]] += pl.read_parquet(place).iter_rows(named=True)
    prompts = sources.get("prompts")
    asked = {} if prompts is None else dict(pl.read_parquet(prompts).select("prompt_id", "country").iter_rows())
    expected = said_of_images(rows["quality"], rows["matches"], asked)
    for row in pl.read_parquet(path).iter_rows(named=True):
        key = (row["metric"], json.loads(row["params"]).get("scorer"), row["item"])
        if key not in expected or not close(row["value"], expected[key]):
            ledger.broken(
                CHECK, f"{where} ({row['metric']}, {row['item']})", "is not what the tables of the image say",
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
