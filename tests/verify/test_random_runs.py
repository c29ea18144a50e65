"""Untouched runs of small recipes drawn at random: every one of them is verified."""

import re
from pathlib import Path

import polars as pl
import pytest
import yaml

from culturekit.metrics.diversity.kernel_diversity import STANDARD_KERNELS
from culturekit.recipes.cube.keys import load_recipe
from culturekit.verify.verify_run import verify_run
from tests.conftest import recipe_here
from tests.effort import THOROUGH
from tests.oracles.scored_again import scored_again
from tests.verify.random_recipes import random_recipe

QUICK = (8, 13, 36)  # A run without an audit, one of a kernel that has no name, and one with an audit


def verified(seed: int, folder: Path) -> None:
    """Run a recipe and verify it."""
    file = folder / f"{seed}.yaml"
    file.write_text(yaml.safe_dump(random_recipe(seed)), encoding="utf-8")
    recipe_here(load_recipe(file), folder / "run")
    answer = verify_run(folder / "run")
    assert [str(finding) for finding in answer.findings] == []
    assert answer.exit_code == 0
    assert {verdict.verdict for verdict in answer.verdicts} <= {"verified"}
    scored_again(folder / "run/scores")
    told = pl.read_parquet(folder / "run/scores/scores.parquet").filter(metric="vs")
    lowest = 1 / told["params"].str.json_path_match("$.size").cast(pl.Float64)
    assert (told["ci_low"].fill_nan(1.0) >= lowest - 1e-9).all()
    assert (told["ci_high"].fill_nan(1.0) <= 1 + 1e-9).all()
    page = (folder / "run/report/report.html").read_text(encoding="utf-8")
    scores = load_recipe(file).scores
    caption = re.search(r"<caption>Diversity VS/(\d+) over all prompts, (.+?) kernel", page)
    assert caption is not None
    assert int(caption[1]) == scores.size
    weights = STANDARD_KERNELS.get(caption[2]) or tuple(map(float, caption[2].split(", ")))
    assert weights in scores.kernels


@pytest.mark.parametrize("seed", QUICK)
def test_an_untouched_run_is_verified(seed: int, tmp_path: Path) -> None:
    verified(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [seed for seed in range(52 if THOROUGH else 9) if seed not in QUICK])
def test_more_untouched_runs_are_verified(seed: int, tmp_path: Path) -> None:
    verified(seed, tmp_path)
