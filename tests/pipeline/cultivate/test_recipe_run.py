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
from culturekit.verify.verify_run import verify_run
from tests.verify.tampering import Change, first, tampered, without_first

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


def test_nothing_is_found_in_an_untouched_run(finished: tuple[Path, list[StageRun]]) -> None:
    answer = verify_run(finished[0])
    assert [str(finding) for finding in answer.findings if finding.severity != "note"] == []
    assert {verdict.verdict for verdict in answer.verdicts} == {"verified", "consistent"}


TAMPERED: dict[str, tuple[str, Change]] = {
    "an activity": ("activities/activities", first("quote", "another quote", quote=".")),
    "what a prompt asks for": ("prompts/prompts", first("text", "a samovar")),
    "a descriptor": ("descriptors/descriptors", first("token", "bagpipes")),
    "a real image": ("real/images", without_first),
    "a phrase": ("extracted-showy/judgments", first("item", "bagpipes")),
    "the raw reply of a phrase": ("extracted-showy/judgments", first("raw", '{"descriptors":"bagpipes"}')),
    "a probability": ("stereotyped-showy/judgments", first("value", 0.123)),
    "a rating of a model": ("likert-showy-by-1/judgments", first("value", 6.0)),
    "what a scene shows": ("truth-showy/judgments", first("item", "bagpipes")),
    "ALIGN of an image": ("ahead/values", first("value", 0.99, metric="align")),
    "ALIGN": ("ahead/scores", first("value", 0.99, metric="align")),
    "a gap": ("gaps/scores", first("value", 0.5)),
    "a dimension": ("breakdown/scores", first("value", 0.3)),
    "a mark of people": ("marks/annotations", first("value", 0.5, criterion="align_marked")),
    "what matters to people": ("marks/scores", first("value", 0.1)),
    "ALIGN put right": ("judged-align/scores", first("value", 0.1)),
    "a limit of HAL put right": ("judged-hal/scores", first("ci_high", 0.99)),
    "the trust in a judge": ("judged-exag/scores", lambda t: t.with_columns(
        pl.col("params").str.replace('"trust":0.', '"trust":0.9', literal=True))),
    "a gap put right": ("corrected-gaps/scores", first("value", 0.5)),
    "an answer of people": ("taken-in/annotations", first("value", 1.5)),
    "a rating of people": ("ratings/scores", first("value", 1.01)),
    "a correlation": ("meta/scores", first("value", 0.99)),
}  # fmt: skip


@pytest.mark.parametrize("what", list(TAMPERED))
def test_what_was_changed_is_found(finished: tuple[Path, list[StageRun]], what: str) -> None:
    """Also by somebody who makes the hashes fit again."""
    place, change = TAMPERED[what]
    with tampered(finished[0] / f"{place}.parquet", change) as folder:
        assert verify_run(folder).exit_code == 4
