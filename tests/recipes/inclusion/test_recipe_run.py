"""The recipe `inclusion`, offline, small: from lists to the report, and once more without doing anything."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.verify.verify_run import verify_run
from tests.recipes.inclusion import small_world
from tests.recipes.shipped_recipes import shared_small

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(shared_folder: Path) -> Path:
    return shared_small("inclusion", shared_folder)


def test_each_score_tells_a_realistic_model_without_a_region_from_a_regional_one_that_is_crude(finished: Path) -> None:
    folder = finished

    def value(table: str, metric: str, model: str) -> float:
        scores = pl.read_parquet(folder / table / "scores.parquet")
        own = scores.filter(pl.col("group").is_null(), pl.col("concept").is_null(), metric=metric, model=model)
        return float(own["value"].item())

    for metric in ("prdc_precision", "prdc_coverage"):
        by_texture, by_content = (
            value(f"realism-by-{extractor}", metric, "glossy") - value(f"realism-by-{extractor}", metric, "rough")
            for extractor in ("texture", "content")
        )
        assert by_texture > 0, "flaws are what an extractor of textures sees"
        assert by_texture > by_content
    assert value("regions-rough", "region_recognised", "rough") > value("regions-glossy", "region_recognised", "glossy")
    assert value("truth", "region_recognised", "rough") > value("truth", "region_recognised", "glossy") + 0.1
    assert value("truth", "object_presence", "rough") < value("truth", "object_presence", "glossy") - 0.1


def test_rates_are_those_of_a_loop_over_the_raw_rows(finished: Path) -> None:
    folder = finished
    rows = pl.read_parquet(folder / "tables-task2/task2.parquet").to_dicts()
    seen: dict[tuple[str, str, str], list[bool]] = {}
    for row in rows:
        if row["source"] == "real":
            seen.setdefault((row["annotator_id"], row["object"], row["region"]), []).append(row["shown"])
    bad = {cell for cell, found in seen.items() if sum(found) < 0.9 * len(found)}
    codes = {"Africa": "af", "Europe": "eu", "Southeast Asia": "sea"}
    answers: dict[tuple[str, str, str, str], list[bool]] = {}
    for row in rows:
        if row["region"] is None or (row["annotator_id"], row["object"], row["region"]) in bad:
            continue
        side = "in" if row["annotator_loc"] == row["region"] else "out"
        for target in ("object", "background"):
            key = (row["source"], row["region"], side, target)
            answers.setdefault(key, []).append(codes[row["region"]] in row[f"{target}_regions"])
    scores = pl.read_parquet(folder / "scores-task2/scores.parquet").filter(
        pl.col("concept").is_null(), pl.col("group").is_not_null(), metric="in_region_rate"
    )
    said = scores.with_columns(pl.col("params").str.json_path_match(f"$.{name}").alias(name)
                               for name in ("side", "target"))  # fmt: skip
    stated = {(row["model"], row["group"], row["side"], row["target"]): row["value"] for row in said.to_dicts()}
    assert stated == pytest.approx({key: sum(found) / len(found) for key, found in answers.items()})
    assert len(stated) == 5 * 3 * 2 * 2


def test_a_run_whose_people_do_not_read_along_ends_and_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    careless = small_world.RECIPE.replace("careless: 0.05", "careless: 1").replace("near:", "least: 1.0, near:")
    monkeypatch.setattr(small_world, "RECIPE", careless)
    run = small_world.small_run(tmp_path)
    for folder in ("judged-regions", "judged-objects"):
        assert pl.read_parquet(run / folder / "scores.parquet").is_empty()
    assert not pl.read_parquet(run / "regions-local" / "scores.parquet").is_empty()
    assert verify_run(run).findings == ()
