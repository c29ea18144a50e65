"""A run in which people put judges right: wired, scored, shown, and recomputed."""

import json
from pathlib import Path

import polars as pl
import pytest

from culturekit.recipes.cube.keys import Recipe, load_recipe
from culturekit.verify.verify_run import verify_run
from tests.conftest import recipe_here, stages_of
from tests.recipes.cube.faithful_runs import judge_of, judging_server

PEOPLE = Path(__file__).parents[2] / "fixtures/people.yaml"
JUDGED = "annotations.judged={criterion: realism, lowest: 1, highest: 5}"
OFFLINE = "faithfulness={scorers: [clipscore:embedded]}"


def recipe(*changes: str) -> Recipe:
    return load_recipe(PEOPLE, [JUDGED, *changes])


def test_judges_are_put_right_by_the_answers_that_count(tmp_path: Path) -> None:
    stages = {stage.name: stage for stage in stages_of(recipe(OFFLINE), tmp_path)}
    judged = stages["judged"]
    assert judged.kind == "score-judged"
    assert {role: path.parent.name for role, path in judged.inputs.items()} == {
        "values-0": "faithfulness", "annotations": "ratings", "sample": "rated-sample",
    }  # fmt: skip
    assert judged.options["criterion"] == "realism"
    assert "judged" not in {stage.name for stage in stages_of(load_recipe(PEOPLE, [OFFLINE]), tmp_path)}


@pytest.mark.endtoend
def test_a_run_says_what_judges_say_and_what_people_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    with judging_server() as server:
        asked = recipe(
            f"faithfulness={{vqascore: '{judge_of(server)}', per_prompt: 2}}",
            "annotations.simulated={careless: 0}", "annotations.prompts=60", "concepts=[art, cuisine]",
        )  # fmt: skip
        recipe_here(asked, tmp_path / "run")
    scores = pl.read_parquet(tmp_path / "run/judged/scores.parquet").filter(metric="vqascore", model="honest")
    rows = [{**row, "about": json.loads(row["params"])} for row in scores.to_dicts()]
    alone = next(row for row in rows if row["concept"] is None and row["about"]["labels"] == "judged")
    corrected = {
        row["about"]["pool"]: row for row in rows if row["concept"] is None and row["about"]["labels"] == "corrected"
    }
    people = pl.read_parquet(tmp_path / "run/ratings/annotations.parquet").filter(criterion="realism", in_region=True)
    images = pl.read_parquet(tmp_path / "run/images-honest/images.parquet")
    said = (people.filter(pl.col("item_id").is_in(images["image_id"].implode()))["value"] - 1) / 4
    row = corrected["in-region"]
    assert row["about"]["people"] >= 30
    assert row["ci_low"] <= float(said.mean()) <= row["ci_high"]  # type: ignore[arg-type]
    assert row["value"] != pytest.approx(alone["value"], abs=0.05)
    page = (tmp_path / "run/report/report.html").read_text(encoding="utf-8")
    assert "Put right by people" in page
    assert f"{row['value']:.3f}" in page
    verification = verify_run(tmp_path / "run")
    assert [str(finding) for finding in verification.findings if finding.severity == "broken"] == []
    assert {one.verdict for one in verification.verdicts if one.folder == "judged"} == {"verified"}
