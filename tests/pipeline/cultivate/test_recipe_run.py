"""The recipe `cultivate`, offline, small: from pages to the report, and once more without doing anything."""

import polars as pl
import pytest

from culturekit.pipeline.steps.report_stage import report_of
from culturekit.verify.verify_run import verify_run
from tests.pipeline.shipped_recipes import Finished, check_built_then_reused, run_small, verified
from tests.verify.tampering import Change, first, tampered, without_first

SMALL = ("ground.countries=[US, IR]", "ground.per_category=1", "images.slots=2", "people.images=2",
         "people.resamples=99", "real.per_prompt=2", "scores.target=these")  # fmt: skip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_small("cultivate", SMALL, tmp_path_factory.mktemp("cultivate"))


def test_every_stage_is_built_and_then_reused(finished: Finished) -> None:
    check_built_then_reused("cultivate", SMALL, finished)


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
def test_what_was_changed_is_found(finished: Finished, what: str) -> None:
    """Also by somebody who makes the hashes fit again."""
    place, change = TAMPERED[what]
    with tampered(finished[0] / f"{place}.parquet", change) as folder:
        assert verify_run(folder).exit_code == 4
