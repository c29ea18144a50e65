"""What `culturekit run` says of recipes of other kinds."""

import json
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


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NOTHING", "ONE"):
        monkeypatch.setitem(RECIPES.entries, name.lower(), Entry(name.lower(), f"{__name__}:{name}", "for a test"))


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_recipe_that_asks_for_no_stage_is_refused(tmp_path: Path, command: str) -> None:
    (tmp_path / "r.yaml").write_text("recipe: nothing\n", encoding="utf-8")
    done = culturekit(command, "r.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is nothing to run" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("models", "name"), [("[]", "card"), ("[{name: a}]", "report")])
def test_a_page_that_no_stage_wrote_is_not_named(tmp_path: Path, models: str, name: str) -> None:
    (tmp_path / "r.yaml").write_text(f"recipe: one\nmodels: {models}\n", encoding="utf-8")
    done = culturekit("run", "r.yaml", "--json", cwd=tmp_path, ends=0)
    data = json.loads(done.stdout)
    assert ([stage["stage"] for stage in data["stages"]], data[name]) == (["numbers"], None)


def test_a_run_that_stops_early_says_nothing_of_older_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = replace(ONE, headline=lambda run: [f"of {', '.join(run.stages)}"])
    monkeypatch.setattr(f"{__name__}.ONE", replace(shown, wire=wire_two))
    (tmp_path / "r.yaml").write_text("recipe: one\n", encoding="utf-8")
    assert "of numbers, letters\n" in culturekit("run", "r.yaml", cwd=tmp_path).stdout
    assert culturekit("run", "r.yaml", "--until", "numbers", cwd=tmp_path).stdout == "of numbers\n"
