"""What `culturekit run` says of recipes of other kinds."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from culturekit.config.kinds import RECIPES, AnyRecipe, RecipeKind
from culturekit.core.registry import Entry
from culturekit.core.roles import Role
from culturekit.core.run import Run
from culturekit.core.stage import Outcome, Stage
from culturekit.core.yaml_source import StrictModel
from tests.command_line import culturekit
from tests.conftest import SMALL

SAMPLE = Path(__file__).parents[2] / "culturekit/kg/sample/wikidata-sample.json.gz"


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of the recipe, walked command by command."""
    root = tmp_path_factory.mktemp("by-hand")
    steps = [
        ("kg", "ingest", SAMPLE, "--out", "graph"),
        ("kg", "extract", "--graph", "graph", "--roots", "art", "--roots", "landmarks", "--out", "candidates"),
        ("cspace", "filter", "--candidates", "candidates/candidates.parquet", "--roots", "art", "--roots", "landmarks")
        + ("--llm", "rules", "--out", "kept"),
        ("cspace", "release", "--kept", "kept/kept.parquet", "--roots", "art", "--roots", "landmarks")
        + ("--include", "review", "--out", "cspace"),
        ("prompts", "build", "cube", "--cspace", "cspace/cspace.parquet", "--out", "prompts"),
        ("prompts", "build", "underspecified", "--cspace", "cspace/cspace.parquet", "--out", "open"),
        ("generate", "--backend", "simulated", "--prompts", "prompts/prompts.parquet", "--slots", "2", "--out", "refs"),
        ("index", "build", "--cspace", "cspace/cspace.parquet", "--encoder", "embedded")
        + ("--references", "refs/images.parquet", "--out", "index"),
        ("generate", "--backend", "simulated?temperature=2", "--prompts", "open/prompts.parquet", "--repeats", "3")
        + ("--slots", "8", "--model", "two", "--out", "images"),
        ("index", "map", "--index", "index", "--images", "images/images.parquet", "--out", "matches"),
        ("score", "qvs", "--matches", "matches/matches.parquet", "--out", "scores"),
    ]
    for step in steps:
        assert "built" in culturekit(*step, cwd=root, ends=0).stdout
    return root


@pytest.mark.endtoend
def test_the_whole_path_can_be_walked_by_hand(by_hand: Path) -> None:
    import polars as pl

    scores = pl.read_parquet(by_hand / "scores/scores.parquet")
    assert set(scores["metric"]) == {"vs"}
    assert set(scores["model"]) == {"two"}
    assert all("mapped" in params for params in scores["params"])


def test_a_score_made_by_hand_is_walked_back(by_hand: Path) -> None:
    done = culturekit("trace", "scores?metric=vs&concept=art&kernel=country", cwd=by_hand, ends=0)
    for word in ("score ", "batch ", "image ", "prompt ", "nearest 1", "path ", "country ", "dump "):
        assert word in done.stdout
    assert "wikidata-sample.json.gz, line" in done.stdout
    as_data = json.loads(culturekit("trace", "scores#0", "--json", cwd=by_hand).stdout)
    assert json.loads(as_data["dump_line"])["id"] == as_data["neighbours"][0]["artifact_id"]


def test_a_stage_answers_in_json_and_is_reused(by_hand: Path) -> None:
    done = culturekit("kg", "ingest", SAMPLE, "--out", "graph", "--json", cwd=by_hand)
    answer = json.loads(done.stdout)
    assert (answer["state"], answer["counts"]["items"]) == ("reused", 998)


@pytest.mark.parametrize(("arguments", "message"), [
    (["kg", "ingest", "nope.json.gz", "--out", "g"], "nope.json.gz: there is no such file"),
    (["kg", "ingest", SAMPLE], "--out"),
    (["kg", "extract", "--graph", "g", "--roots", "art", "--out", "c"], "g: there is no such file"),
    (["kg", "extract", "--graph", "g", "--roots", "nope.yaml", "--out", "c"], "there is no such YAML file"),
    (["run", "nope.yaml"], "there is no such recipe"),
    (["run", SMALL, "--until", "nowhere"], "there is no stage 'nowhere'"),
    (["run", SMALL, "--set", "sead=1"], "did you mean 'seed'?"),
    (["prompts", "build", "nothing", "--cspace", "c", "--out", "p"], "'cube', 'underspecified'"),
    (["metrics", "show", "fame"], "there is no such metric"),
    (["trace", "nowhere#1"], "there are no scores"),
    (["report", ".", "--out", "r"], "not the folder of a run"),
    (["generate", "--backend", "dalle", "--prompts", "p", "--out", "i"], "there is no backend 'dalle'"),
    (["audit", "none.json"], "there is no such file"),
    (["nonsense"], "nonsense"),
])  # fmt: skip
def test_a_users_mistake_ends_with_2(tmp_path: Path, arguments: list[str | Path], message: str) -> None:
    done = culturekit(*arguments, cwd=tmp_path, ends=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_one_bad_line_of_a_large_dump_is_told_and_is_no_finding_unless_asked_for(tmp_path: Path) -> None:
    lines = [json.dumps({"id": f"Q{n}", "type": "item"}) for n in range(1, 1_000)]
    (tmp_path / "d.json").write_text("\n".join([*lines, "{"]), encoding="utf-8")
    for more, code in (((), 0), ((), 0), (("--strict",), 1)):
        done = culturekit("kg", "ingest", "d.json", "--out", "graph", *more, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        assert "1 of 1,000 lines is malformed and left out (0.1000%)" in done.stderr
    (tmp_path / "e.json").write_text("\n".join([*lines[:9], "{"]), encoding="utf-8")
    done = culturekit("kg", "ingest", "e.json", "--out", "other", "--max-malformed", "0.2", cwd=tmp_path, ends=1)
    assert "1 malformed: not-an-entity" in done.stdout
    assert (tmp_path / "other/manifest.json").exists()


def test_a_second_run_in_a_busy_folder_is_refused(tmp_path: Path) -> None:
    from culturekit.core.stage import hold

    with hold(tmp_path / "run/.lock"):
        done = culturekit("run", SMALL, "--workdir", tmp_path / "run")
    assert done.returncode == 2
    assert "another run is working here; found process" in done.stderr


@pytest.mark.endtoend
def test_ctrl_c_ends_with_130_and_the_next_run_goes_on(tmp_path: Path) -> None:
    import signal
    import time

    command = [sys.executable, "-m", "culturekit", "run", str(SMALL), "--workdir", str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "run/prompts/manifest.json").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate()
    assert process.returncode == 130, printed
    assert "Traceback" not in printed
    assert culturekit("run", SMALL, "--workdir", tmp_path / "run").returncode == 0


def test_the_run_ends_with_the_path_of_its_report_and_a_plan_writes_nothing(run_copy: Path, tmp_path: Path) -> None:
    planned = culturekit("plan", SMALL, "--workdir", tmp_path / "run", ends=0)
    assert not (tmp_path / "run").exists()
    assert "to do" in planned.stdout
    done = culturekit("run", SMALL, "--workdir", run_copy.name, cwd=run_copy.parent)
    assert done.stdout.splitlines()[-1] == f"report: {run_copy.name}/report/report.html"
    assert "empty is lying." in done.stdout
    assert "reused, 0 done" in done.stderr
    steps = json.loads(culturekit("plan", SMALL, "--workdir", run_copy, "--json").stdout)
    assert {step["state"] for step in steps} == {"done"}


def test_metrics_are_listed_and_shown() -> None:
    assert "qvs" in culturekit("metrics", "list").stdout
    assert "formula:" in culturekit("metrics", "show", "qvs").stdout
    answer = culturekit("metrics", "show", "qvs", "--json").stdout
    assert json.loads(answer, parse_constant=pytest.fail)["low"] is None  # JSON knows no infinity
    assert json.loads(culturekit("metrics", "show", "vs", "--json").stdout)["name"] == "vs"


def test_the_version_is_said() -> None:
    from culturekit.version import VERSION

    assert culturekit("--version").stdout.strip() == VERSION


class Named(StrictModel):
    name: str


class Evaluating(AnyRecipe):
    models: tuple[Named, ...] = ()


def wire_one(recipe: Any, run: Run) -> None:
    run.add(Stage("numbers", "numbers", 1, lambda _: Outcome({"numbers": 1}), {}), Role("numbers"))


def wire_two(recipe: Any, run: Run) -> None:
    wire_one(recipe, run)
    run.add(Stage("letters", "letters", 1, lambda _: Outcome({"letters": 1}), {}), Role("letters"))


NOTHING = RecipeKind(AnyRecipe, lambda _recipe, _run: None)
ONE = RecipeKind(Evaluating, wire_one)


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NOTHING", "ONE"):
        monkeypatch.setitem(RECIPES.entries, name.lower(), Entry(name.lower(), f"{__name__}:{name}", "for a test"))


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_recipe_that_asks_for_no_stage_is_refused(tmp_path: Path, command: str) -> None:
    (tmp_path / "r.yaml").write_text("recipe: nothing\n", encoding="utf-8")
    done = culturekit(command, "r.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is nothing to run" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize(("models", "name"), [("[]", "card"), ("[{name: a}]", "report")])
def test_a_page_that_no_stage_wrote_is_not_named(tmp_path: Path, models: str, name: str) -> None:
    (tmp_path / "r.yaml").write_text(f"recipe: one\nmodels: {models}\n", encoding="utf-8")
    done = culturekit("run", "r.yaml", "--json", cwd=tmp_path, ends=0)
    data = json.loads(done.stdout)
    assert ([stage["stage"] for stage in data["stages"]], data[name]) == (["numbers"], None)


@pytest.mark.usefixtures("kinds")
def test_a_run_that_stops_early_says_nothing_of_older_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = replace(ONE, headline=lambda run: [f"of {', '.join(run.stages)}"])
    monkeypatch.setattr(f"{__name__}.ONE", replace(shown, wire=wire_two))
    (tmp_path / "r.yaml").write_text("recipe: one\n", encoding="utf-8")
    assert "of numbers, letters\n" in culturekit("run", "r.yaml", cwd=tmp_path).stdout
    assert culturekit("run", "r.yaml", "--until", "numbers", cwd=tmp_path).stdout == "of numbers\n"
