"""What `culturekit run` says of recipes of other kinds."""

import json
from pathlib import Path
from typing import Any

import pytest

from culturekit.config.kinds import RECIPES, AnyRecipe, RecipeKind
from culturekit.records.work import Outcome
from culturekit.registry import Entry
from culturekit.stages.roles import Role
from culturekit.stages.run import Run
from culturekit.stages.stage import Stage
from culturekit.storage.yaml_model import StrictModel
from tests.command_line import culturekit


class Named(StrictModel):
    name: str


class Evaluating(AnyRecipe):
    models: tuple[Named, ...] = ()


def wire_one(recipe: Any, run: Run) -> None:
    run.add(Stage("numbers", "numbers", 1, lambda _: Outcome({"numbers": 1}), {}), Role("numbers"))


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
    done = culturekit("run", "r.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert ([stage["stage"] for stage in said["stages"]], said[name]) == (["numbers"], None)
