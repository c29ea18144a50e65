"""A favourite, a collapse and a model without culture: each shows in the diagnosis of a run, whatever its scores."""

import json
from pathlib import Path

import polars as pl
import pytest

from culturekit.recipes.cube.keys import load_recipe
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import score_qvs
from tests.conftest import SMALL, recipe_here

SETTINGS = (
    "images.repeats=25",
    "models.0.backend=simulated",
    "models.1.backend=simulated?favour=JP&favour_strength=0.9",
    "models.2.backend=simulated?noise=1",
)


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of an even model, one with a favourite, and one without culture."""
    root = tmp_path_factory.mktemp("diagnosed")
    recipe_here(load_recipe(SMALL, SETTINGS), root, until="scores")
    return root


@pytest.fixture(scope="module")
def hubs(diagnosed: Path) -> pl.DataFrame:
    return pl.read_parquet(diagnosed / "diagnosis/hubs.parquet")


def skew(root: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads((root / "diagnosis/manifest.json").read_bytes())["notes"]["neighbour_skew"]
    return found


@pytest.mark.slow
def test_the_hubs_of_a_model_with_a_favourite_are_of_that_country(hubs: pl.DataFrame, diagnosed: Path) -> None:
    own, all_of_them = pl.col("nearest").filter(pl.col("country") == "JP").sum(), pl.col("nearest").sum()
    shares = dict(hubs.group_by("model").agg(own / all_of_them).iter_rows())
    assert shares["narrow"] >= 0.8 > shares["broad"] + 0.3
    assert skew(diagnosed)["narrow"] > skew(diagnosed)["broad"]


@pytest.mark.slow
def test_a_collapsed_model_has_a_few_large_hubs(diagnosed: Path, tmp_path: Path) -> None:
    others = [setting for setting in SETTINGS if not setting.startswith("models.1.")]
    collapsed = load_recipe(SMALL, [*others, "models.1.backend=simulated?collapse=0.9&modes=2"])
    recipe_here(collapsed, tmp_path, until="scores")
    hubs = pl.read_parquet(tmp_path / "diagnosis/hubs.parquet").filter(pl.col("rank") == 1)
    share = dict(hubs.select("model", "share").iter_rows())
    assert share["narrow"] > 2 * share["broad"]
    assert skew(tmp_path)["narrow"] > 1.5 * skew(tmp_path)["broad"]


@pytest.mark.slow
def test_a_model_without_culture_scores_like_the_floor_and_lies_as_far_from_everything(diagnosed: Path) -> None:
    similar = {
        name: json.loads((diagnosed / f"matches-{name}/manifest.json").read_bytes())["notes"]["similarity"]["median"]
        for name in ("broad", "empty", "floor-culture-free")
    }
    assert abs(similar["empty"] - similar["floor-culture-free"]) < 0.1 < similar["broad"] - similar["empty"]
    tables = [
        pl.read_parquet(diagnosed / f"matches-{name}/matches.parquet") for name in ("empty", "floor-culture-free")
    ]
    kernels = QvsOptions(kernels=((0.0, 1.0, 0.0),))
    empty, floor = (score_qvs(table, None, options=kernels).scores["value"][0] for table in tables)
    assert empty == pytest.approx(floor, abs=0.15)
