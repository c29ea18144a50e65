"""The pages that say how to add a recipe and a stage: their changes are applied to a copy of the package, and run."""

import json
import re
import subprocess
from pathlib import Path

import polars as pl
import pytest

from tests.typed_pages import ROOT, blocks, copy_package, run_copied

RECIPE, STAGE = ROOT / "docs/add-a-recipe.md", ROOT / "docs/add-a-stage.md"


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the changes of both pages, and what a user writes beside it."""
    root = tmp_path_factory.mktemp("changed")
    copy_package(root)
    for page in (RECIPE, STAGE):
        (change,) = blocks(page, "diff")
        done = subprocess.run(
            ["git", "apply", "-"], cwd=root, input=change, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, (page.name, done.stderr)
    (root / "census.yaml").write_text(blocks(RECIPE, "yaml")[0], encoding="utf-8")
    (root / "dishes.csv").write_text(blocks(RECIPE, "csv")[0], encoding="utf-8")
    return root


def test_the_pages_are_short() -> None:
    for page in (RECIPE, STAGE):
        prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        assert len(prose.split()) <= 500, page.name


def test_both_changes_fit_the_package(changed: Path) -> None:
    assert "CENSUS" in (changed / "culturekit/config/kinds.py").read_text(encoding="utf-8")
    assert "copies_stage" in (changed / "culturekit/recipes/census.py").read_text(encoding="utf-8")


@pytest.mark.endtoend
def test_the_recipe_runs_is_reused_planned_and_verified(changed: Path) -> None:
    names = ["cspace", "prompts"]
    names += [f"{kind}-{model}" for model in ("broad", "homely") for kind in ("images", "truth", "copies")]
    planned = json.loads(run_copied(changed, "plan", "census.yaml", "--json"))
    assert [step["name"] for step in planned] == [*names, "shown"]
    for state in ("built", "reused"):
        done = json.loads(run_copied(changed, "run", "census.yaml", "--json"))["stages"]
        assert [(Path(stage["folder"]).name, stage["state"]) for stage in done] == [
            (name, state) for name in [*names, "shown"]
        ]
    shown = pl.read_parquet(changed / "runs/census/shown/distributions.parquet")
    assert set(shown["model"]) == {"broad", "homely"}
    copies = pl.read_parquet(changed / "runs/census/copies-homely/quality.parquet")
    assert copies.height == 4 * pl.read_parquet(changed / "runs/census/prompts/prompts.parquet").height
    assert "verified;" in run_copied(changed, "verify", "runs/census")
