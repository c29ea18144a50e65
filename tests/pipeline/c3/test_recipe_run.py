"""The recipe `c3`, offline, small: from seeds to the report, and once more without doing anything."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.pipeline.run_recipe import run_recipe
from culturekit.pipeline.run_stage import StageRun
from culturekit.pipeline.steps.report_stage import report_of
from culturekit.pipeline.workers.local_engine import LocalEngine
from culturekit.verify.verify_run import verify_run

SMALL = ("captions.count=60", "captions.sample=40", "pairs.simulated.each=2", "pairs.keep=20", "people.pairs=60",
         "people.prompts=36", "people.resamples=99")  # fmt: skip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[StageRun]]]:
    folder = tmp_path_factory.mktemp("c3")
    with LocalEngine(1) as engine:
        yield folder, run_recipe(load_any_recipe(find_recipe("c3"), SMALL), folder, engine=engine)


def test_every_stage_is_built_and_then_reused(finished: tuple[Path, list[StageRun]]) -> None:
    folder, runs = finished
    assert {run.state for run in runs} == {"built"}
    with LocalEngine(1) as engine:
        again = run_recipe(load_any_recipe(find_recipe("c3"), SMALL), folder, engine=engine)
    assert {run.state for run in again} == {"reused"}


def test_the_report_has_a_section_for_every_table_of_the_paper(finished: tuple[Path, list[StageRun]]) -> None:
    page = (finished[0] / "report/report.html").read_text(encoding="utf-8")
    for anchor in ("models", "captions", "strategies", "pearson", "criteria", "histogram", "expansion", "exports"):
        assert f'id="{anchor}"' in page
    assert "CC0-1.0" in page
    assert report_of(finished[0]).kind == "caption-report"


def test_the_judge_ranks_the_showy_model_first_and_people_put_that_right(finished: tuple[Path, list[StageRun]]) -> None:
    judged = pl.read_parquet(finished[0] / "judged-vqascore/scores.parquet").with_columns(
        labels=pl.col("params").str.json_path_match("$.labels")
    )
    true = pl.read_parquet(finished[0] / "truth/scores.parquet").filter(metric="vqascore")
    first = {labels: part.sort("value")["model"][-1] for (labels,), part in judged.group_by("labels")}
    assert first == {"judged": "showy", "corrected": "steady"}
    assert true.sort("value")["model"][-1] == "steady"


def test_nothing_is_found_in_an_untouched_run(finished: tuple[Path, list[StageRun]]) -> None:
    answer = verify_run(finished[0])
    assert [str(finding) for finding in answer.findings if finding.severity != "note"] == []
    assert answer.exit_code == 0
