"""The recipe `cultivate`, offline, small: from pages to the report, and once more without doing anything."""

import polars as pl
import pytest

from culturekit.recipes.run_recipe import report_of
from tests.recipes.shipped_recipes import SMALL, Finished, check_built_then_reused, run_small, verified

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_small("cultivate", SMALL["cultivate"], tmp_path_factory.mktemp("cultivate"))


def test_every_stage_is_built_and_then_reused(finished: Finished) -> None:
    check_built_then_reused("cultivate", SMALL["cultivate"], finished)


def test_the_report_has_a_section_for_every_table_of_the_paper(finished: Finished) -> None:
    page = (finished[0] / "report/report.html").read_text(encoding="utf-8")
    for anchor in ("headline", "models", "people", "dimensions", "categories", "matrix", "descriptors", "accuracy"):
        assert f'id="{anchor}"' in page
    assert "human – human" in page
    assert "simulated model knows a made-up world" in page
    assert report_of(finished[0]).kind == "scene-report"


def test_the_judge_ranks_the_showy_model_too_high(finished: Finished) -> None:
    def align(folder: str) -> dict[str, float]:
        table = pl.read_parquet(finished[0] / folder / "scores.parquet")
        own = table.filter(pl.col("country").is_null(), pl.col("group").is_null(), metric="align")
        return dict(own.filter(pl.col("model") != "real").select("model", "value").iter_rows())

    judged, true = align("ahead"), align("ahead-truth")
    assert max(judged, key=judged.__getitem__) == "showy"
    assert min(true, key=true.__getitem__) == "showy"


def test_nothing_is_found_in_an_untouched_run(finished: Finished) -> None:
    answer = verified(finished[0])
    assert {verdict.verdict for verdict in answer.verdicts} == {"verified"}
