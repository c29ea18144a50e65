"""The cube recipe with models of every kind at once: simulated, with weights, and bought."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.core.digests import read_manifest
from culturekit.core.inputs import manifest_of
from culturekit.core.stage import PlannedStage
from culturekit.recipes.cube.keys import Recipe, load_recipe
from culturekit.recipes.planning import pilot_models, plan_recipe
from culturekit.recipes.run_recipe import run_recipe
from tests.conftest import HeardProgress, HereEngine
from tests.generation.diffusion.tiny_pipelines import tiny
from tests.generation.services.paid_images import KEY, google, openai
from tests.llm.server.running import RunningServer, server_process
from tests.llm.server.script import Fault, Pictures, Rule, Script, When

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

CUBE = Path(__file__).parents[2] / "recipes/cube.yaml"
SCRIPT = Script(
    rules=(Rule(Fault("moderation"), When(providers=("openai",)), times=3),), pictures=Pictures(revised=True)
)
SMALLER = ["audit=null", "concepts=[art]", "references.per_artifact=2", "images.repeats=3", "mapping.max_error=0.2"]


@dataclass
class Finished:
    """A run of all of them, with its plans: before anything, after the pilot, and at the end."""

    folder: Path
    recipe: Recipe
    before: dict[str, PlannedStage]
    piloted: dict[str, PlannedStage]
    calls_before_the_run: int
    server: RunningServer


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    for package in ("torch", "diffusers", "transformers", "openai", "google.genai"):
        pytest.importorskip(package)
    root = tmp_path_factory.mktemp("kinds")
    with pytest.MonkeyPatch.context() as patch, server_process(SCRIPT) as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("GEMINI_API_KEY", KEY)
        models = [
            {"name": "known-bias", "backend": "simulated?temperature=2"},
            {"name": "tiny", "backend": f"diffusers:{tiny(root)}?steps=1&batch=8&device=cpu"},
            {"name": "gpt", "backend": openai(server), "buying": {"budget": 2}},
            {"name": "gemini", "backend": google(server), "buying": {"budget": 5}},
        ]
        recipe = load_recipe(CUBE, [*SMALLER, "diagnosis.floor_repeats=1", f"models={json.dumps(models)}"])
        folder = root / "run"
        with HereEngine() as engine:
            hands: dict[str, Any] = {"engine": engine, "progress": HeardProgress()}
            run_recipe(recipe, folder, until="prompts", **hands)
            before = planned(recipe, folder)
            assert pilot_models(recipe, folder, **hands) == ["images-tiny"]
            piloted, calls = planned(recipe, folder), len(server.records())
            run_recipe(recipe, folder, **hands)
        yield Finished(folder, recipe, before, piloted, calls, server)


def planned(recipe: Recipe, folder: Path) -> dict[str, PlannedStage]:
    return {step.name: step for step in plan_recipe(recipe, folder)}


def test_a_plan_says_dollars_at_once_and_minutes_after_a_pilot(finished: Finished) -> None:
    assert finished.calls_before_the_run == 0, "a plan and a pilot send nothing"
    for name in ("images-gpt", "images-gemini"):
        step = finished.before[name]
        assert step.requests == step.units == 24
        assert step.dollars is not None
        assert step.dollars > 0.1
    assert finished.before["images-tiny"].seconds is None, "only a pilot can tell"
    assert (finished.piloted["images-tiny"].seconds or 0) > 0
    assert finished.piloted["images-gpt"] == finished.before["images-gpt"]
    assert {step.state for step in planned(finished.recipe, finished.folder).values()} == {"done"}


def test_what_was_sold_is_what_was_planned(finished: Finished) -> None:
    bought = [record for record in finished.server.records() if record.good]
    assert len(bought) == made(finished, "gpt") + made(finished, "gemini") == 45, (
        "three were filtered, none bought twice"
    )
    own = [record for record in bought if record.provider == "openai"]
    dollars = (5 * sum(one.input_tokens for one in own) + 40 * sum(one.output_tokens for one in own)) / 1e6
    assert dollars * 24 / 21 == pytest.approx(finished.before["images-gpt"].dollars, rel=0.05)


def made(finished: Finished, model: str) -> int:
    manifest = manifest_of(finished.folder / f"images-{model}")
    return manifest.counts["ok"]


def test_one_report_compares_them_and_says_what_is_not_comparable(finished: Finished) -> None:
    notes = [read_manifest(finished.folder / name) for name in ("scores", "comparison")]
    told = [manifest.notes["not_comparable"] for manifest in notes if manifest is not None]
    assert told[0] == told[1]
    rewriter, seeds, sizes = told[0]
    assert "gemini rewriter unknown; gpt rewriter on; known-bias rewriter off; tiny rewriter off" in rewriter
    assert "gpt honoured: no; known-bias honoured: yes" in seeds
    assert "gemini 16x16; gpt 16x16; known-bias 64x64; tiny 64x64" in sizes
    page = (finished.folder / "report/report.html").read_text(encoding="utf-8")
    for sentence in (rewriter, seeds, sizes):
        assert sentence.replace("'", "&#39;") in page
    assert "What is not comparable" in page
    assert page.count("not alike in rewriter, seeds honoured, size") > 0
    assert "3 filtered" in page


def test_the_table_of_differences_names_what_else_differs(finished: Finished) -> None:
    scores = pl.read_parquet(finished.folder / "comparison/scores.parquet")
    apart = {
        (about["a"], about["b"]): about.get("differ_in")
        for about in map(json.loads, scores["params"].to_list())
    }  # fmt: skip
    assert apart["gpt", "known-bias"] == ["rewriter", "seeds honoured", "size"]
    assert apart["gemini", "gpt"] == ["rewriter"]
    assert apart["known-bias", "tiny"] is None


def test_every_score_of_the_run_is_verified(finished: Finished) -> None:
    command = [sys.executable, "-m", "culturekit", "verify", str(finished.folder), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(CUBE.parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
