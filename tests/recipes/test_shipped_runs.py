"""Shipped recipes, offline, small: each is reused whole, its page has every table, and people put its judge right."""

import shutil
from pathlib import Path

import polars as pl
import pytest

from culturekit.recipes.run_recipe import report_of
from tests.recipes.shipped_recipes import SMALL, run_small, shared_small

pytestmark = pytest.mark.slow

# Of each the kind of the report, the anchors of its sections, and words that stand on the page
PAGES = {
    "c3": (
        "caption-report",
        "models captions difficulty strategies pearson criteria histogram spread asked expansion exports",
        ("CC0-1.0",),
    ),
    "cultivate": (
        "scene-report", "headline models people dimensions categories matrix descriptors accuracy",
        ("human – human", "ALIGN + HAL", "CuRe, simulated", "VQAScore, ", "tau at quantile 0.75",
         "proposer simulated-first", "descriptors of the prompt", "of the best 3",
         "simulated model knows a made-up world"),
    ),
    "inclusion": (
        "inclusion-report", "corrected realism extractors names seen agreement compared",
        ("Extractors put models in opposite orders: in precision",),
    ),
}  # fmt: skip

# Of each recipe and folder of scores, where they stand there, which model comes first, and which last
ORDERS = [
    ("c3", "judged-vqascore", {"labels": "judged"}, "showy", None),
    ("c3", "judged-vqascore", {"labels": "corrected"}, "steady", None),
    ("c3", "truth", {"metric": "vqascore"}, "steady", None),
    ("cultivate", "ahead", {"metric": "align", "country": None}, "showy", None),
    ("cultivate", "ahead-truth", {"metric": "align", "country": None}, None, "showy"),
    ("inclusion", "judged-regions", {"metric": "region_recognised", "labels": "judged"}, "postcard", None),
    ("inclusion", "judged-regions", {"labels": "corrected", "pool": "in-region"}, "local", None),
    ("inclusion", "judged-regions", {"labels": "corrected", "pool": "out-of-region"}, "postcard", None),
    ("inclusion", "truth", {"metric": "region_recognised"}, "local", None),
]


@pytest.mark.parametrize("recipe", PAGES)
def test_a_finished_run_does_nothing_again(recipe: str, shared_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(shared_small(recipe, shared_folder), tmp_path / "again"))
    assert {run.state for run in run_small(recipe, SMALL[recipe], folder)[1]} == {"reused"}


@pytest.mark.parametrize("recipe", PAGES)
def test_the_report_has_a_section_for_every_table_of_the_paper(recipe: str, shared_folder: Path) -> None:
    finished, (kind, anchors, words) = shared_small(recipe, shared_folder), PAGES[recipe]
    page = (finished / "report/report.html").read_text(encoding="utf-8")
    for text in (*(f'id="{anchor}"' for anchor in anchors.split()), *words):
        assert text in page
    assert report_of(finished).kind == kind


@pytest.mark.parametrize(("recipe", "stage", "where", "first", "last"), ORDERS)
def test_the_judge_ranks_too_high_what_people_and_the_truth_do_not(
    recipe: str, stage: str, where: dict[str, str | None], first: str | None, last: str | None, shared_folder: Path
) -> None:
    table = pl.read_parquet(shared_small(recipe, shared_folder) / stage / "scores.parquet")
    scores = table.filter(pl.col("group").is_null(), pl.col("model") != "real")
    for name, value in where.items():
        column = pl.col(name) if name in table.columns else pl.col("params").str.json_path_match(f"$.{name}")
        scores = scores.filter(column.eq_missing(pl.lit(value, pl.String)))
    models = scores.sort("value")["model"].to_list()
    assert len(models) == len(set(models)) > 2
    assert models[-1] == first or models[0] == last
