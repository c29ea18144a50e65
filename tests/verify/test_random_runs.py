"""Untouched runs of small recipes drawn at random: every one of them is verified."""

import re
from pathlib import Path

import polars as pl
import pytest
import yaml

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.errors import UsageError
from culturekit.metrics.diversity.labels import STANDARD_KERNELS
from culturekit.recipes.cube.keys import load_recipe
from culturekit.verify.verify_run import verify_run
from tests.conftest import recipe_here
from tests.effort import THOROUGH
from tests.oracles.scored_again import scored_again
from tests.verify.random_recipes import SEVERAL, more_of_cube, random_recipe, random_settings

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


@pytest.mark.slow
@pytest.mark.skipif(not THOROUGH, reason="each takes a minute or more")
@pytest.mark.parametrize("seed", range(1000, 1050))
def test_untouched_runs_of_other_recipes_are_verified(seed: int, tmp_path: Path) -> None:
    """A recipe that is refused, as its parts do not fit together, is none."""
    kind = (*SEVERAL, "cube")[seed % 5]
    settings = random_settings(kind, seed, tmp_path) if kind in SEVERAL else []
    if kind == "cube":
        (tmp_path / "cube.yaml").write_text(yaml.safe_dump(more_of_cube(seed)), encoding="utf-8")
    try:
        recipe_here(
            load_any_recipe(find_recipe(kind) if settings else tmp_path / "cube.yaml", settings), tmp_path / "run"
        )
    except UsageError as refused:
        pytest.skip(str(refused))
    answer = verify_run(tmp_path / "run")
    assert [str(finding) for finding in answer.findings if finding.severity != "note"] == []
    assert answer.exit_code == 0
    assert "wrong" not in {verdict.verdict for verdict in answer.verdicts}
