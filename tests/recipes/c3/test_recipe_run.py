"""The recipe `c3`, offline, small: from seeds to the report, and once more without doing anything."""

import json
import re
from pathlib import Path

import jsonschema
import polars as pl
import pytest

from culturekit.core.engines import LocalEngine
from culturekit.core.errors import UsageError
from culturekit.core.run import run_stage
from culturekit.recipes.several_runs import several_runs_stage, site_stage
from tests.recipes.shipped_recipes import shared_small
from tests.report.test_site import Links, schema

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(shared_folder: Path) -> Path:
    return shared_small("c3", shared_folder)


def test_images_of_other_captions_stand_beside_those_of_the_culture(finished: Path) -> None:
    """Figures 3 and 4 of the paper: how people rate images of COCO's captions, and some of these."""
    page = (finished / "report/report.html").read_text(encoding="utf-8")
    above: dict[str, float] = {}
    for what in ("images", "coco"):
        about = pl.read_parquet(finished / f"rated-{what}/rated_items.parquet").select("item_id", "model")
        rated = pl.read_parquet(finished / f"rated-{what}/annotations.parquet").join(about, on="item_id")
        ratings = rated.filter(model="plain")["value"].drop_nulls()
        above[what] = ratings.filter(ratings >= 3).len() / ratings.len()
        assert f"{above[what]:.1%}" in page
    assert above["coco"] > above["images"], "fewer things are easier to draw"
    assert {"plain, coco", "plain, this benchmark"} <= set(re.findall(r"<bdi>([^<]+)</bdi>", page))


def test_it_is_a_site_whose_records_hold_nothing_that_only_the_simulation_knows(finished: Path, tmp_path: Path) -> None:
    with LocalEngine(1) as engine:
        run_stage(site_stage([finished]), tmp_path / "site", engine=engine)
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in (tmp_path / "site").rglob("*.html")}
    places = {(path.parent / place).resolve() for path, page in pages.items() for place in page.places
              if not place.startswith(("#", "data:"))}  # fmt: skip
    assert all(place.is_file() for place in places)
    assert {path for path in pages if path.name != "index.html"} <= places
    assert len(pages) == 1 + 1 + 3
    showy = next((tmp_path / "site/models").glob("*showy*")).read_text(encoding="utf-8")
    checked = jsonschema.Draft7Validator(schema("instance_level_eval"))
    for record in map(json.loads, map(Path.read_bytes, (tmp_path / "site/every-eval-ever").rglob("*.json"))):
        jsonschema.validate(record, schema("eval"))
        path = tmp_path / "site/every-eval-ever" / record["detailed_evaluation_results"]["file_path"]
        values: dict[str, list[float]] = {}
        for sample in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            checked.validate(sample)
            assert sample["output"]["raw"] == [sample["sample_id"]]
            values.setdefault(sample["evaluation_result_id"], []).append(sample["evaluation"]["score"])
        scores = {one["evaluation_result_id"]: one["score_details"]["score"] for one in record["evaluation_results"]}
        kinds = {name.partition("-")[0].partition("/")[0] for name in values}
        assert kinds == {"aligned", "faithfulness", "difficulty"}
        assert {name: sum(found) / len(found) for name, found in values.items()} == pytest.approx(
            {name: scores[name] for name in values}
        )
        for one in record["evaluation_results"]:
            told = one["score_details"]["details"]
            row = pl.read_parquet(finished / told["folder"] / "scores.parquet").row(int(told["row"]), named=True)
            assert (row["model"], row["value"]) == (record["model_info"]["name"], one["score_details"]["score"])
            assert "truth" not in told["folder"]
            if row["model"] == "showy":
                assert f"row {told['row']} of {told['folder']}/scores.parquet" in showy


def test_runs_without_a_common_scale_are_on_no_page_together(finished: Path, small_run: Path) -> None:
    with pytest.raises(UsageError, match="nothing in common"):
        site_stage([finished, small_run])
    with pytest.raises(UsageError, match="share no scale"):
        several_runs_stage([finished, small_run])
    with pytest.raises(UsageError, match="one headline score"):
        site_stage([finished], "somebody/c3")
