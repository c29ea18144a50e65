import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.core.digests import digest_file
from culturekit.core.errors import BudgetReached
from culturekit.recipes.cube.keys import Recipe
from culturekit.recipes.planning import plan_recipe
from culturekit.verify.verify_run import verify_run
from tests.conftest import recipe_here
from tests.llm.server import RunningServer
from tests.recipes.cube.faithful_runs import faithful_recipe, judge_of, judging_server, with_faithfulness
from tests.verify.forging import change_table, reseal_all

MODELS = ("broad", "empty", "narrow")


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with judging_server() as running:
        yield running


def go(recipe: Recipe, root: Path, until: str | None = None) -> None:
    recipe_here(recipe, root, until=until)


@pytest.fixture(scope="module")
def run(small_run: Path, server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("faithful")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-of-nobody")
        root = with_faithfulness(small_run, folder / "run")
        go(faithful_recipe(folder, judge_of(server)), root)
    yield root


def scores(run: Path) -> dict[tuple[str, str], dict[str, Any]]:
    rows = pl.read_parquet(run / "faithfulness/scores.parquet").filter(pl.col("concept").is_null())
    return {(row["metric"], row["model"]): row for row in rows.to_dicts()}


def test_dsg_is_what_the_answers_give_by_hand(run: Path) -> None:
    parents: Mapping[str, list[str]] = {"q01": [], "q02": ["q01"], "q03": ["q01", "q02"], "q04": []}
    for model in MODELS:
        answers: dict[str, dict[str, str | None]] = {}
        for row in pl.read_parquet(run / f"answers-{model}/judgments.parquet").to_dicts():
            answers.setdefault(row["image_id"], {})[row["item"]] = row["choice"]
        values = []
        for said in answers.values():
            if None in said.values():
                continue
            counted = [
                said[name] == "yes" and all(said[one] != "no" for one in above) for name, above in parents.items()
            ]
            values.append(sum(counted) / len(parents))
        row = scores(run)["dsg", model]
        assert (row["n"], row["value"]) == (len(values), pytest.approx(sum(values) / len(values)))


def test_judgments_that_brought_no_answer_are_counted_by_how_they_ended(run: Path) -> None:
    counts = pl.read_parquet(run / "faithfulness/answer_counts.parquet").filter(pl.col("concept").is_null())
    ended = counts.filter(task="dsg").group_by("outcome").agg(pl.col("judgments").sum())
    judged = pl.concat([pl.read_parquet(run / f"answers-{model}/judgments.parquet") for model in MODELS])
    assert dict(ended.rows()) == dict(judged.group_by("outcome").len().rows())
    assert {"ok", "refused", "invalid"} <= set(ended["outcome"]), "the test has all three"


def test_rates_of_questions_add_up(run: Path) -> None:
    rates = pl.read_parquet(run / "faithfulness/question_rates.parquet")
    assert rates.height == 4 * len(MODELS)
    assert (rates["images"] == 6).all()
    assert (rates["yes"] + rates["no"] + rates["unanswered"] == rates["images"]).all()
    assert (rates["failed"] >= rates["no"]).all()
    assert (rates.filter(question_id="q04")["void"] == 0).all()
    assert rates.filter(question_id="q03")["void"].sum() > 0


def test_vqascore_is_the_mean_of_what_the_server_listed(run: Path) -> None:
    for model in MODELS:
        judged = pl.read_parquet(run / f"vqascore-{model}/judgments.parquet")
        values = []
        for raw in judged["raw"]:
            listed = {item["token"]: 2.718281828459045 ** item["logprob"] for item in json.loads(raw)["tokens"]}
            values.append(listed["Yes"] / (listed["Yes"] + listed["No"]))
        assert scores(run)["vqascore", model]["value"] == pytest.approx(sum(values) / len(values))


def test_the_report_says_what_was_asked_and_by_whom(run: Path) -> None:
    page = (run / "report/report.html").read_text(encoding="utf-8")
    section = page.partition('<h2 id="faithfulness">')[2].partition("</section>")[0]
    for text in (
        "seer-1",
        "DSG",
        "VQAScore",
        "unparsed",
        "known bias",
        "Is thing 3 shown?",
        "No scorer compared",
        "Differences of two",
    ):
        assert text in section, text
    assert section.count("<svg") == section.count("</svg>") == 3


def test_a_verification_makes_all_of_it_again(run: Path, tmp_path: Path) -> None:
    found = verify_run(run)
    assert [str(finding) for finding in found.findings if finding.severity == "broken"] == []
    own = [verdict for verdict in found.verdicts if verdict.folder.startswith("faithfulness")]
    assert own
    assert {verdict.verdict for verdict in own} == {"verified"}
    broken = Path(shutil.copytree(run, tmp_path / "run"))
    change_table(
        broken / "answers-broad/judgments.parquet",
        lambda t: t.with_columns(choice=pl.when(pl.col("choice") == "no").then(pl.lit("yes")).otherwise("choice")),
    )
    reseal_all(broken)
    problems = [str(finding) for finding in verify_run(broken).findings if finding.severity == "broken"]
    assert any(problem.startswith("answers-broad/judgments.parquet") for problem in problems)
    assert any(problem.startswith("faithfulness/scores.parquet") for problem in problems)


@pytest.mark.endtoend
def test_the_same_bytes_after_the_budget_ran_out_on_the_way(
    run: Path, small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    with judging_server() as other:
        judge = judge_of(other)
        root = with_faithfulness(small_run, tmp_path / "run")
        planned = {step.name: step for step in plan_recipe(faithful_recipe(tmp_path, judge), root)}
        assert planned["questions"].requests == 1
        assert (planned["questions"].dollars or 0) > 0
        assert planned["vqascore-broad"].requests == 6
        assert other.stats()["requests"] == 0
        for budget in (0.00002, 0.0008, 0.002):
            with pytest.raises(BudgetReached):
                go(faithful_recipe(tmp_path, judge, budget=budget), root)
            assert other.stats()["usd"] <= budget, "of all stages together"
        go(faithful_recipe(tmp_path, judge), root)
        stats = other.stats()
        probes = 1 + 2 * len(MODELS) - 1  # every stage asks once for itself whether the server enforces schemas
        assert (stats["broken"], stats["bought_twice"]) == ([], probes)
        assert {step.state for step in plan_recipe(faithful_recipe(tmp_path, judge), root)} == {"done"}
    for name in ("questions", *(f"{judge}-{model}" for judge in ("answers", "vqascore") for model in MODELS)):
        for table in sorted((run / name).glob("*.parquet")):
            assert digest_file(table) == digest_file(root / name / table.name), (name, table.name)
    assert digest_file(run / "faithfulness/scores.parquet") == digest_file(root / "faithfulness/scores.parquet")
