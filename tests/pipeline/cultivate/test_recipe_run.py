"""The recipe `cultivate`, offline, small: from pages to the report, and once more without doing anything."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.pipeline.run_recipe import run_recipe
from culturekit.pipeline.run_stage import StageRun
from culturekit.pipeline.steps.report_stage import report_of
from culturekit.pipeline.workers.local_engine import LocalEngine

SMALL = ("ground.countries=[US, IR]", "ground.per_category=1", "images.slots=2", "people.images=2",
         "people.resamples=99", "real.per_prompt=2", "scores.target=these")  # fmt: skip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[StageRun]]]:
    folder = tmp_path_factory.mktemp("cultivate")
    with LocalEngine(1) as engine:
        yield folder, run_recipe(load_any_recipe(find_recipe("cultivate"), SMALL), folder, engine=engine)


def test_every_stage_is_built_and_then_reused(finished: tuple[Path, list[StageRun]]) -> None:
    folder, runs = finished
    assert {run.state for run in runs} == {"built"}
    with LocalEngine(1) as engine:
        again = run_recipe(load_any_recipe(find_recipe("cultivate"), SMALL), folder, engine=engine)
    assert {run.state for run in again} == {"reused"}


def test_the_report_has_a_section_for_every_table_of_the_paper(finished: tuple[Path, list[StageRun]]) -> None:
    page = (finished[0] / "report/report.html").read_text(encoding="utf-8")
    for anchor in ("headline", "models", "people", "dimensions", "categories", "matrix", "descriptors", "accuracy"):
        assert f'id="{anchor}"' in page
    assert "human – human" in page
    assert "simulated model knows a made-up world" in page
    assert report_of(finished[0]).kind == "scene-report"


def test_the_judge_ranks_the_showy_model_too_high(finished: tuple[Path, list[StageRun]]) -> None:
    def align(folder: str) -> dict[str, float]:
        table = pl.read_parquet(finished[0] / folder / "scores.parquet")
        own = table.filter(pl.col("country").is_null(), pl.col("group").is_null(), metric="align")
        return dict(own.filter(pl.col("model") != "real").select("model", "value").iter_rows())

    judged, true = align("ahead"), align("ahead-truth")
    assert max(judged, key=judged.__getitem__) == "showy"
    assert min(true, key=true.__getitem__) == "showy"
