"""The pages that say how to add a recipe and a stage: what they show is written beside a recipe, and run."""

import json
import re
import subprocess
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import culturekit
from tests.typed_pages import ROOT, blocks

RECIPE, STAGE = ROOT / "docs/add-a-recipe.md", ROOT / "docs/add-a-stage.md"


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("changed")
    for name, language in (("census.py", "python"), ("census.yaml", "yaml"), ("dishes.csv", "csv")):
        (root / name).write_text(blocks(RECIPE, language)[0], encoding="utf-8")
    (change,) = blocks(STAGE, "diff")
    done = subprocess.run(["git", "apply", "-"], cwd=root, input=change, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return root


def test_the_pages_are_short() -> None:
    for page in (RECIPE, STAGE):
        prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        assert len(prose.split()) <= 500, page.name


def run_here(root: Path, *words: str) -> str:
    ended = culturekit(*words, cwd=root, ends=0)
    return ended.stdout


@pytest.mark.endtoend
def test_the_recipe_runs_is_reused_planned_and_verified(changed: Path) -> None:
    names = ["cspace", "prompts"]
    names += [f"{kind}-{model}" for model in ("broad", "homely") for kind in ("images", "truth", "copies")]
    planned = json.loads(run_here(changed, "plan", "census.yaml", "--json"))
    assert [step["name"] for step in planned] == [*names, "shown"]
    for state in ("built", "reused"):
        done = json.loads(run_here(changed, "run", "census.yaml", "--json"))["stages"]
        assert [(Path(stage["folder"]).name, stage["state"]) for stage in done] == [
            (name, state) for name in [*names, "shown"]
        ]
    shown = pl.read_parquet(changed / "runs/census/shown/distributions.parquet")
    assert set(shown["model"]) == {"broad", "homely"}
    copies = pl.read_parquet(changed / "runs/census/copies-homely/quality.parquet")
    assert copies.height == 4 * pl.read_parquet(changed / "runs/census/prompts/prompts.parquet").height
    assert "verified;" in run_here(changed, "--plugins", "census.yaml", "verify", "runs/census")
    run_here(changed, "--plugins", "census.yaml", "report", "runs/census", "--out", "page")
    assert "Pictures" in (changed / "page/report.html").read_text(encoding="utf-8")
