"""What a folder is called decides nothing: manifests are the same bytes, and a run that was moved is whole."""

import json
from pathlib import Path

import pytest

from culturekit.core.stage import Outcome, Stage, Work
from culturekit.recipes.cube.keys import Recipe
from tests.command_line import culturekit
from tests.conftest import recipe_here, stage_here


def written(work: Work) -> Outcome:
    (work.out / "rows.txt").write_text("rows", encoding="utf-8")
    return Outcome({"rows": 1})


def made_in(folder: Path, names: tuple[str, str]) -> bytes:
    first, second = (folder / name for name in names)
    stage_here(Stage("a", "first", 1, written, {}), first)
    stage_here(Stage("b", "second", 1, written, {"made": first}), second)
    return (second / "manifest.json").read_bytes()


def test_manifests_are_the_same_bytes_whatever_folders_are_called(tmp_path: Path) -> None:
    manifest = made_in(tmp_path, ("graph", "candidates"))
    assert manifest == made_in(tmp_path / "else", ("my graph", "2026"))
    assert json.loads(manifest)["inputs"]["made"]["name"] == "first", "what it is: the stage that made it"


@pytest.mark.endtoend
def test_a_run_that_was_moved_is_reused_and_verified(run_copy: Path, small_recipe: Recipe, tmp_path: Path) -> None:
    moved = tmp_path / "another place/of another name"
    moved.parent.mkdir()
    run_copy.rename(moved)
    runs = recipe_here(small_recipe, moved)
    assert {run.state for run in runs} == {"reused"}
    answer = json.loads(culturekit("verify", moved, "--json").stdout)
    assert (answer["exit_code"], set(answer["verdicts"])) == (0, {"verified"})
