import os
import subprocess
import sys
from pathlib import Path

import pytest

from culturekit.cli.options import complete_metric, complete_recipe, spec_completer
from tests.command_line import culturekit


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with recipes in it, and in a folder of it."""
    for name in ("evaluation.yaml", "cuisine.yml", "notes.txt", "deeper/other.yaml", ".hidden.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_recipes_are_offered_by_name_and_by_path(here: Path) -> None:
    assert complete_recipe("cu") == ["cube", "cube-release", "cultivate", "cuisine.yml"]
    assert complete_recipe("") == [
        "c3", "cube", "cube-release", "cultivate", "inclusion", "linguistic", "cuisine.yml", "deeper/",
        "evaluation.yaml",
    ]  # fmt: skip
    assert complete_recipe("deeper/") == ["deeper/other.yaml"]
    assert complete_recipe(f"{here}/ev") == [f"{here}/evaluation.yaml"]
    assert complete_recipe("nowhere/") == []


def test_specs_and_metrics_are_offered() -> None:
    assert complete_metric("frech") == ["frechet_distance"]
    assert spec_completer("culturekit.index.encoder:ENCODERS")("e") == ["embedded"]
    assert "simulated" in spec_completer("culturekit.generation.backend:BACKENDS")("")
    assert spec_completer("culturekit.index.raters.quality:SCORERS")("hps") == ["hpsv2"]


TYPED = "culturekit run ev"
WORDS = {
    "bash": {"COMP_WORDS": TYPED, "COMP_CWORD": "2"}, "zsh": {"_TYPER_COMPLETE_ARGS": TYPED},
    "fish": {"_TYPER_COMPLETE_ARGS": TYPED, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}  # fmt: skip


@pytest.mark.endtoend
@pytest.mark.parametrize("shell", WORDS)
def test_each_shell_is_answered(shell: str, here: Path) -> None:
    environment = {**os.environ, "_CULTUREKIT_COMPLETE": f"complete_{shell}", **WORDS[shell]}
    command = [sys.executable, "-m", "culturekit"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here, env=environment, timeout=600)
    assert "evaluation.yaml" in done.stdout, done.stderr
    assert "notes.txt" not in done.stdout


def test_a_recipe_that_is_not_there_is_answered_with_the_nearest(here: Path) -> None:
    done = culturekit("run", "evalution.yaml", cwd=here, ends=2)
    assert (
        "there is no such recipe; expected a YAML file, or one of: c3, cube, cube-release, cultivate, inclusion, "
        "linguistic. "
        "Did you mean 'evaluation.yaml'?" in done.stderr
    )
    assert "Did you mean 'cube'?" in culturekit("plan", "cub", cwd=here).stderr
    assert "Did you mean frechet_distance" in culturekit("metrics", "show", "frechet").stderr
