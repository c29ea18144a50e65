"""People and judges in a recipe `cube`: forms, answers, and judges put right by answers."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from culturekit.core.errors import CultureKitError, UsageError
from culturekit.core.inputs import manifest_of
from culturekit.core.run import run_stage
from culturekit.core.stage import Stage
from culturekit.recipes.cube.keys import Recipe, load_recipe
from culturekit.verify.verify_run import verify_run
from tests.command_line import culturekit
from tests.conftest import HeardProgress, HereEngine, recipe_here, stage_here, stages_of
from tests.recipes.cube.test_realism_stages import judge_of, judging_server

PEOPLE = Path(__file__).parents[2] / "fixtures/people.yaml"


@pytest.fixture(scope="module")
def people_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs") / "people"
    recipe_here(load_recipe(PEOPLE), root)
    return root


def table(run: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(run / f"{name}.parquet")


@pytest.mark.endtoend
def test_every_model_is_judged_on_the_same_prompts_by_the_people_asked_for(people_run: Path) -> None:
    sample = table(people_run, "rated-sample/audit_sample")
    prompts = {model: set(part["prompt_id"]) for (model,), part in sample.group_by("model")}
    assert len(prompts) == 3
    assert len({frozenset(own) for own in prompts.values()}) == 1
    assert sample.height == 72
    key = table(people_run, "to-rate/annotation_key").filter(kind="item")
    assert set(key["item_id"]) == set(sample["image_id"])
    slots = key.group_by("item_id", "in_region").agg(pl.col("slots").sum())
    assert set(slots.filter(pl.col("in_region"))["slots"]) == {3}
    assert set(slots.filter(~pl.col("in_region"))["slots"]) == {1}


def test_checks_repeats_and_the_careless_are_in_no_average(people_run: Path) -> None:
    counted = table(people_run, "ratings/annotations")
    checks = table(people_run, "taken-in/annotation_checks")
    assert {"check", "repeat"} == set(checks["kind"])
    key = ["item_id", "annotator", "scheme", "criterion"]
    assert counted.select(key).is_unique().all()
    careless = set(checks.filter(kind="check", held=False)["annotator"])
    assert careless
    assert not careless & set(counted["annotator"])
    manifest = manifest_of(people_run / "ratings")
    assert manifest.drops["flagged attention-failed"] > 0
    assert counted.height + sum(manifest.drops.values()) == table(people_run, "taken-in/annotations").height
    assert "simulated" in str(manifest.notes["caveat"])


def test_the_honest_model_is_rated_higher_by_everybody_at_home(people_run: Path) -> None:
    ratings = table(people_run, "ratings/rating_table").filter(
        pl.col("concept").is_null(), pl.col("pool") == pl.col("country")
    )
    yes = table(people_run, "ratings/choice_table").filter(
        pl.col("concept").is_null(), pl.col("pool") == pl.col("country"), pl.col("choice") == "yes"
    )
    for country in ("BR", "IN", "JP"):
        real = dict(ratings.filter(country=country, criterion="realism").select("model", "mean").iter_rows())
        assert real["blank"] < min(real["honest"], real["astray"])
        rates = dict(yes.filter(country=country).select("model", "rate").iter_rows())
        assert rates["honest"] > 0.7 > rates.get("astray", 0.0)
    assert set(ratings.filter(model="honest")["pool"]) == {"BR", "IN", "JP"}


def test_metrics_follow_people_where_they_should(people_run: Path) -> None:
    scores = table(people_run, "meta/scores").filter(model="all", metric="human_correlation")
    rows = [(json.loads(row["params"]), row) for row in scores.iter_rows(named=True)]
    asked = [
        row["value"]
        for params, row in rows
        if (params["metric"], params["method"]) == ("mapped_as_asked", "spearman")
        and params["with"].get("choice") == "yes"
    ]
    assert len(asked) == 3
    assert sum(asked) > 3 * 0.3
    assert {params["with"]["pool"] for params, _ in rows} == {"BR", "IN", "JP"}
    assert {params["method"] for params, _ in rows} == {"spearman", "kendall", "pearson"}


def test_the_report_says_it_all_and_that_nobody_was_asked(people_run: Path) -> None:
    page = (people_run / "report/report.html").read_text(encoding="utf-8")
    start = page.index('<section aria-labelledby="people"')
    section = page[start : page.index("</section>", start)]
    for said in (
        "Simulated people.", "faithfulness, by people of each country", "mean below 3", "mean below 2", "within",
        "flagged attention-failed", "attention checks:", "Krippendorff", "Spearman", "<svg",
        "mapped to the country asked for",
    ):  # fmt: skip
        assert said in section, said
    ratings = table(people_run, "ratings/rating_table")
    cell = ratings.filter(pl.col("pool") == "JP", country="JP", model="blank", criterion="realism", concept="art")
    assert f"{cell['mean'][0]:.2f} ± {cell['sd'][0]:.2f}" in section


def plain_recipe(tmp_path: Path, *settings: str) -> Recipe:
    own, text = tmp_path / "recipe.yaml", PEOPLE.read_text(encoding="utf-8").split("annotations:")[0]
    own.write_text(text + "scores: {size: 2}\n", encoding="utf-8")
    return load_recipe(own, settings)


def recipe(tmp_path: Path, **annotations: Any) -> Recipe:
    given = ", ".join(f"{name}: {value}" for name, value in annotations.items())
    return plain_recipe(tmp_path, f"annotations={{{given}}}")


def people_stages(asked: Recipe, root: Path) -> dict[str, Stage]:
    names = {"rated-sample", "to-rate", "simulated-answers", "taken-in", "ratings", "meta"}
    return {stage.name: stage for stage in stages_of(asked, root) if stage.name in names}


def test_forms_wait_for_answers_and_answers_find_their_forms(tmp_path: Path) -> None:
    assert list(people_stages(plain_recipe(tmp_path), tmp_path)) == []
    assert list(people_stages(recipe(tmp_path), tmp_path)) == ["rated-sample", "to-rate"]
    (tmp_path / "answers.json").write_text("[]", encoding="utf-8")
    asked = recipe(tmp_path, files=f"[{tmp_path}/answers.json]")
    assert list(people_stages(asked, tmp_path)) == ["rated-sample", "to-rate", "taken-in", "ratings", "meta"]


def test_tables_that_were_imported_before_need_no_forms(tmp_path: Path, people_run: Path) -> None:
    asked = recipe(tmp_path, files=f"[{people_run}/taken-in/annotations.parquet]", keep="[attention-failed]")
    ratings, meta = people_stages(asked, tmp_path).values()
    assert (ratings.name, meta.name) == ("ratings", "meta")
    assert {"annotations", "items", "quarantine-0", "checks-0"} == set(ratings.inputs)
    assert ratings.options["keep"] == ("attention-failed",)
    nobody = recipe(tmp_path, files=f"[{people_run}/taken-in/annotations.parquet]", only="[XX]")
    with pytest.raises(UsageError, match="nobody is in a pool"):
        stage_here(people_stages(nobody, tmp_path)["ratings"], tmp_path / "ratings")


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"simulated": "{}", "scheme": "cultivate"}, "simulated people fill in the scheme cube only"),
        ({"in_region": "0"}, "nobody is to judge anything"),
        ({"files": "[nowhere.json]"}, "there is no file 'nowhere.json'"),
        ({"project": "nowhere"}, "there is no project.json"),
        ({"keep": "[untidy]"}, "there is no such flag"),
        ({"scheme": "cubism"}, "there is no such scheme"),
    ],
)
def test_what_does_not_fit_together_is_said(tmp_path: Path, annotations: dict[str, str], said: str) -> None:
    if "keep" in annotations:
        annotations = {**annotations, "simulated": "{}"}
    with pytest.raises(CultureKitError, match=said):
        people_stages(recipe(tmp_path, **annotations), tmp_path)


def test_exports_named_in_a_recipe_are_answers_to_the_forms_of_the_run(people_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(people_run, tmp_path / "people"))
    asked = recipe(tmp_path, files=f"[{people_run}/simulated-answers/answers.json]", out_of_region=1, prompts=24)
    for stage in list(people_stages(asked, run).values())[:-1]:
        done = run_stage(stage, run / stage.name, engine=HereEngine(), progress=HeardProgress(), replace=True)
        assert done.state == ("built" if stage.name == "ratings" else "reused"), stage.name
    for name in ("taken-in/annotations", "ratings/rating_table"):
        assert table(run, name).equals(table(people_run, name))


def study(people_run: Path, path: Path) -> Path:
    """Write what three people of Japan answered: Ana reads along, Ben does not, and Cleo hands in Ana's answers."""
    key = table(people_run, "to-rate/annotation_key").filter(annotator_region="JP")
    checks = table(people_run, "taken-in/annotation_checks").filter(kind="check")
    careless = set(checks.filter(held=False)["annotator"])
    exported = orjson.loads((people_run / "simulated-answers/answers.json").read_bytes())
    tasks = []
    for task in (task for task in exported if task["data"]["task"] in set(key["task"])):
        careful = [one for one in task["annotations"] if one["completed_by"] not in careless]
        ana, ben = careful[0], careful[-1]
        if task["data"]["task"] in set(key.filter(kind="check")["task"]):
            scales = ({**one, "value": {"choices": ["1"]}} if one["value"]["choices"][0].isdigit() else one
                      for one in ana["result"])  # fmt: skip
            ben = {**ben, "result": list(scales)}
        said = {"Ana": ana, "Ben": ben, "Cleo": ana}
        tasks.append({**task, "annotations": [{**one, "completed_by": name} for name, one in said.items()]})
    path.write_bytes(orjson.dumps(tasks))
    return path


def test_a_study_of_three_that_rests_on_one_says_so_first(people_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(people_run, tmp_path / "people"))
    given = f"files: [{study(people_run, tmp_path / 'answers.json')}]"
    own = tmp_path / "recipe.yaml"
    own.write_text(PEOPLE.read_text(encoding="utf-8").replace("simulated: {careless: 0.2}", given), encoding="utf-8")
    recipe_here(load_recipe(own), run)
    raters = {row["annotator"]: row for row in table(run, "ratings/raters").to_dicts()}
    assert raters["Ana"]["counted"] == raters["Ana"]["answers"] > 0
    assert (raters["Ben"]["counted"], raters["Cleo"]["counted"]) == (0, 0)
    assert raters["Cleo"]["same_as"] == "Ana"
    assert set(table(run, "ratings/annotations")["annotator"]) == {"Ana"}
    page = (run / "report/report.html").read_text(encoding="utf-8")
    first = page[page.index('<section class="answer"') : page.index("<table")]
    for said in (
        "3 people answered, and 1 of them counts: Ana.", "Left out: Ben (failed ",
        "Cleo (gave the same answers as Ana)", "rests on one person.",
    ):  # fmt: skip
        assert said in first, said
    assert "How each person did" in page
    told = culturekit("annotate", "status", run / "taken-in")
    assert told.returncode == 0
    assert re.search(r"^Cleo +JP .* gave the same answers as Ana$", told.stdout, re.MULTILINE)
    kept = load_recipe(own, ["annotations.keep=[copied]"])
    recipe_here(kept, Path(shutil.copytree(run, tmp_path / "kept")))
    assert set(table(tmp_path / "kept", "ratings/annotations")["annotator"]) == {"Ana", "Cleo"}
    page = (tmp_path / "kept/report/report.html").read_text(encoding="utf-8")
    assert "3 people answered, and 2 of them count: Ana, Cleo." in page


JUDGED = "annotations.judged={criterion: realism, lowest: 1, highest: 5}"
OFFLINE = "faithfulness={scorers: [clipscore:embedded]}"


def judged_recipe(*changes: str) -> Recipe:
    return load_recipe(PEOPLE, [JUDGED, *changes])


def test_judges_are_put_right_by_the_answers_that_count(tmp_path: Path) -> None:
    stages = {stage.name: stage for stage in stages_of(judged_recipe(OFFLINE), tmp_path)}
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
        asked = judged_recipe(
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
