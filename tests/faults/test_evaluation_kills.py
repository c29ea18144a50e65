import json
from pathlib import Path

import polars as pl
import pytest

from culturekit.verify.verify_run import verify_run
from tests.effort import THOROUGH
from tests.faults.evaluation_kills import evaluation, kill_and_count

pytestmark = pytest.mark.endtoend

pytest.importorskip("openai")

KILLS = 30 if THOROUGH else 2


@pytest.fixture(autouse=True)
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")


def test_a_killed_evaluation_ends_in_the_same_bytes_and_buys_no_more_twice_than_was_under_way(tmp_path: Path) -> None:
    given = evaluation(tmp_path, repeats=2, references=1, sample="16")
    result = kill_and_count(tmp_path, given, kills=1, seed=4, longest=4.0, only_asking=True)
    assert result.kills >= 1
    assert result.different == []
    assert result.files > 200
    assert result.bought_twice <= result.most_twice
    routes_are_scored_counted_and_shown(tmp_path / "undisturbed")


def routes_are_scored_counted_and_shown(run: Path) -> None:
    scores = pl.read_parquet(run / "routes/scores.parquet")
    assert set(scores["metric"]) >= {"vs", "qvs", "route_agreement", "route_kappa"}
    about = json.loads(scores.filter(metric="route_agreement", model="narrow")["params"][0])
    assert about["images_b"] == about["common"] == 15, "one picture of sixteen is missing"
    verdicts = {verdict.verdict for verdict in verify_run(run).verdicts if verdict.folder == "routes"}
    assert verdicts == {"verified"}
    page = (run / "report/report.html").read_text(encoding="utf-8")
    assert "Two routes" in page
    assert "What is missing" in page


@pytest.mark.slow
def test_kills_of_an_evaluation_of_sampled_images(tmp_path: Path) -> None:
    given = evaluation(tmp_path, repeats=8 if THOROUGH else 3, references=2, sample="32")
    result = kill_and_count(tmp_path, given, kills=KILLS, seed=9, longest=20.0)
    assert result.kills >= KILLS
    assert result.different == []
    assert result.bought_twice <= result.most_twice
