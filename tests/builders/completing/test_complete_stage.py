import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.completing.complete_stage import CompletionOptions, complete_stage
from culturekit.builders.completing.completion import CompletionInputs
from culturekit.builders.completing.completion_names import CompletionLimits
from culturekit.core.stage import Stage, input_records, key_of
from culturekit.kg.concepts import load_concept
from culturekit.llm.answers import LlmOptions
from culturekit.recipes.cube.keys import load_recipe
from culturekit.recipes.planning import plan_recipe
from tests.builders.completion_world import dish, world
from tests.conftest import SMALL, recipe_here, stages_of
from tests.faults.asking_kills import ROOT, environment
from tests.llm.server.running import server_process

PROBES_TWICE = 1  # Each stage asks once whether the server enforces schemas, in the same words

LOCAL = "openai:proposer-1?base_url=http://127.0.0.1:9/v1"


@pytest.fixture
def inputs(tmp_path: Path) -> CompletionInputs:
    return world(tmp_path / "in", [dish(1, "feijoada")], [(dish(2, "tucupi"), "judge x")])


def key(inputs: CompletionInputs, proposer: str = LOCAL, limits: CompletionLimits | None = None, **llm: object) -> str:
    options = LlmOptions(**llm)  # type: ignore[arg-type]
    wanted = CompletionOptions((load_concept("cuisine"),), proposer, limits or CompletionLimits())
    stage = complete_stage(inputs, wanted, options)
    return key_of(stage, input_records(stage.inputs))


def test_what_changes_proposals_changes_the_key(inputs: CompletionInputs, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [key(inputs), key(inputs, LOCAL.replace("-1", "-2")), key(inputs, limits=CompletionLimits(rounds=2))]
    monkeypatch.setattr(
        "culturekit.builders.completing.complete_stage.wordings", lambda: {"cspace.propose": "other words"}
    )
    keys.append(key(inputs))
    monkeypatch.undo()
    inputs.kept.write_bytes(inputs.kept.read_bytes() + b" ")
    keys.append(key(inputs))
    assert len(set(keys)) == len(keys)


def by_name(stages: list[Stage]) -> dict[str, Stage]:
    return {stage.name: stage for stage in stages}


def test_a_recipe_completes_between_filter_and_release_where_it_says_so(tmp_path: Path) -> None:
    without = by_name(stages_of(load_recipe(SMALL), tmp_path))
    assert "completion" not in without
    assert without["cspace"].inputs["kept"] == tmp_path / "filter/kept.parquet"
    stages = by_name(stages_of(load_recipe(SMALL, ["completion.rounds=2"]), tmp_path))
    assert stages["completion"].options["limits"]["rounds"] == 2  # type: ignore[index]
    assert stages["cspace"].inputs["kept"] == tmp_path / "completion/completed.parquet"


def test_offline_a_completion_asks_every_pair_once_and_adds_nothing(tmp_path: Path) -> None:
    recipe = load_recipe(SMALL, ["completion.rounds=2"])
    runs = recipe_here(recipe, tmp_path, until="cspace")
    completion = next(run for run in runs if run.name == "completion")
    assert completion.manifest.notes["ended"] == {"dry": 8}
    kept = pl.read_parquet(tmp_path / "filter/kept.parquet")
    completed = pl.read_parquet(tmp_path / "completion/completed.parquet")
    assert completed.select(kept.columns).equals(kept)
    assert set(completed["source"]) == {"wikidata"}


def test_a_plan_bounds_the_completion_before_anything_ran(tmp_path: Path) -> None:
    recipe = load_recipe(SMALL, [f"judge={LOCAL}&price=0.15/0.60", "completion={rounds: 3, per_round: 5, shown: 9}"])
    step = {planned.name: planned for planned in plan_recipe(recipe, tmp_path)}["completion"]
    assert (step.units, step.unit, step.requests) == (8, "pairs", 8 * 3 * (1 + 5))
    assert step.tokens is not None
    assert step.tokens > 300 * 8 * 3 * 6
    assert step.dollars


def ran(workdir: Path, spec: str, budget: float, until: str = "completion") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "culturekit", "run", str(SMALL), "--workdir", str(workdir), "--until", until]
    settings = [f"judge={spec}", "completion={rounds: 2, per_round: 4}", f"llm.budget={budget}", "countries=[BR, JP]"]
    for setting in settings:
        command += ["--set", setting]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment(), cwd=ROOT, timeout=600
    )


def spent(workdir: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "culturekit", "llm", "cost", str(workdir), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(), cwd=ROOT)
    lines = json.loads(done.stdout)["lines"]
    return {
        stage: sum(line["usd"] for line in lines if line["stage"] == stage) for stage in {x["stage"] for x in lines}
    }


@pytest.mark.slow
def test_the_stages_of_a_recipe_spend_one_budget_between_them(tmp_path: Path) -> None:
    workdir = tmp_path / "run"
    with server_process(model="tests.builders.completing_model:answer") as server:
        spec = f"openai:judge-1?base_url={server.openai_url}&price=0.15/0.60"
        assert ran(workdir, spec, 5.0, until="filter").returncode in {0, 1}
        of_filter = spent(workdir)["filter"]
        budget = of_filter + 0.0025
        stopped = ran(workdir, spec, budget)
        assert stopped.returncode == 5, stopped.stderr
        assert sum(spent(workdir).values()) <= budget
        finished = ran(workdir, spec, 5.0)
        assert finished.returncode in {0, 1}, finished.stderr
        assert sum(spent(workdir).values()) == pytest.approx(server.stats()["usd"], abs=1e-9)
        assert server.stats()["bought_twice"] == PROBES_TWICE
