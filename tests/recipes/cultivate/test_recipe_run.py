"""The recipe `cultivate`, offline, small: from pages to the report, and once more without doing anything."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.recipes.run_recipe import report_of
from tests.recipes.shipped_recipes import check_reused, shared_small

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(shared_folder: Path) -> Path:
    return shared_small("cultivate", shared_folder)


def test_every_stage_is_built_and_then_reused(finished: Path, tmp_path: Path) -> None:
    check_reused("cultivate", finished, tmp_path)


def test_the_report_has_a_section_for_every_table_of_the_paper(finished: Path) -> None:
    page = (finished / "report/report.html").read_text(encoding="utf-8")
    for anchor in ("headline", "models", "people", "dimensions", "categories", "matrix", "descriptors", "accuracy"):
        assert f'id="{anchor}"' in page
    for line in ("human – human", "ALIGN + HAL", "CuRe, simulated", "VQAScore, ", "tau at quantile 0.75",
                 "proposer simulated-first", "descriptors of the prompt", "of the best 3"):  # fmt: skip
        assert line in page
    assert "simulated model knows a made-up world" in page
    assert report_of(finished).kind == "scene-report"


def test_the_judge_ranks_the_showy_model_too_high(finished: Path) -> None:
    def align(folder: str) -> dict[str, float]:
        table = pl.read_parquet(finished / folder / "scores.parquet")
        own = table.filter(pl.col("country").is_null(), pl.col("group").is_null(), metric="align")
        return dict(own.filter(pl.col("model") != "real").select("model", "value").iter_rows())

    judged, true = align("ahead"), align("ahead-truth")
    assert max(judged, key=judged.__getitem__) == "showy"
    assert min(true, key=true.__getitem__) == "showy"
