"""The recipe `linguistic`, offline, small: from lists to the report, and once more without doing anything."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from culturekit.recipes.linguistic.page import linguistic_page
from culturekit.recipes.run_recipe import report_of
from culturekit.report.report_stage import folders_of
from culturekit.report.sections import render_sections
from tests.command_line import culturekit
from tests.recipes.linguistic.test_docs_page import PAGE
from tests.recipes.shipped_recipes import run_small
from tests.report.test_scenes_hostile import Seen
from tests.typed_pages import typed

SMALL = ("prompts.nouns=3", "images.slots=5", "people.places=150")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_small("linguistic", SMALL, tmp_path_factory.mktemp("linguistic"))[0]


def scores(folder: Path, name: str, **where: str | None) -> pl.DataFrame:
    table = pl.read_parquet(folder / name / "scores.parquet")
    said = ("of", "pool", "labels", "detector", "tone", "criterion", "first")
    table = table.with_columns(pl.col("params").str.json_path_match(f"$.{one}").alias(one) for one in said)
    return table.filter(pl.col(column).eq_missing(pl.lit(value, pl.String)) for column, value in where.items())


def test_the_report_has_a_section_for_every_table_of_the_paper(finished: Path) -> None:
    page = (finished / "report/report.html").read_text(encoding="utf-8")
    for anchor in ("dialects", "tones", "histogram", "neutral", "ranking", "modern", "questions", "ratings", "asked"):
        assert f'id="{anchor}"' in page
    for told in (
        "car / whip",
        "a plaza in America",
        "printed in the paper",
        "take it that 5% of answers",
        "sees 4 of 10 swatches",
        "sees 10 of 10 swatches",
        "cannot see dark skin",
        "0.27 to 0.41",
    ):
        assert told in page
    assert report_of(finished).kind == "linguistic-report"


def test_a_scorer_that_reads_words_ranks_the_literal_model_first_and_people_last(
    finished: Path,
) -> None:
    by = {
        "clipscore": scores(finished, "dialects", metric="dialect_gap", of="clipscore"),
        "people": scores(finished, "dialects", metric="dialect_gap", of="correct", pool="anywhere"),
        "truth": scores(finished, "true-dialects", metric="dialect_gap", of="correct", labels="truth"),
    }
    orders = {who: table.sort("value")["model"].to_list() for who, table in by.items()}
    assert orders["clipscore"][0] == "literal"
    assert orders["people"][-1] == orders["truth"][-1] == "literal"
    assert orders["truth"][0] == "open"


def test_the_published_rule_sees_no_dark_skin_and_people_put_that_right(finished: Path) -> None:
    dark = {}
    for who, folder, where in (
        ("rule", "tones-dall-eval", {"detector": "dall-eval", "labels": None}),
        ("people", "tones-dall-eval", {"labels": "corrected"}),
        ("truth", "true-tones", {"detector": "people"}),
    ):
        table = scores(finished, folder, metric="tone_share", model="open", group=None, **where)
        dark[who] = sum(table.filter(pl.col("tone").is_in(["9", "10"]))["value"].to_list())
        if who == "people":
            limits = dict(zip(table["tone"], table.select("ci_low", "ci_high").iter_rows(), strict=True))
    true = scores(finished, "true-tones", metric="tone_share", model="open", group=None, detector="people")
    assert dark["rule"] < 0.15 < dark["people"]
    assert abs(dark["people"] - dark["truth"]) < 0.06
    held = [limits[tone][0] <= value <= limits[tone][1] for tone, value in true.select("tone", "value").iter_rows()]
    assert sum(held) >= 8


def test_scores_are_made_as_the_page_says(finished: Path, tmp_path: Path) -> None:
    lying = {
        "images": "images-open", "prompts": "prompts", "quality": "clipscore-open", "vectors": "vectors-images-open",
        "captions": "vectors-of-questions", "annotations": "rated-places",
    }  # fmt: skip
    for name, folder in lying.items():
        (tmp_path / name).symlink_to(finished / folder)
    commands = [words for words in typed(PAGE) if words[0] == "score"]
    assert [words[1] for words in commands] == ["tones", "dialects", "neutral", "question-pairs", "ratings"]
    for words in commands:
        answer = culturekit(*words, cwd=tmp_path)
        assert answer.returncode == 0, (words, answer.stderr)
        table = pl.read_parquet(tmp_path / words[words.index("--out") + 1] / "scores.parquet")
        assert table["group"].drop_nulls().n_unique() > 1, "each gives the rows of groups that the page promises"


@pytest.mark.parametrize("text", ["<img src=x onerror=alert(1)>", "\u202e{{7*7}}", "=cmd|' /C calc'!A0", "Z" * 9_000])
def test_hostile_groups_and_pools_are_text_on_the_page(finished: Path, tmp_path: Path, text: str) -> None:
    """Names of groups come from a user's lists, names of pools and of dialects from the recipe."""
    plain = Seen(render_sections(linguistic_page(folders_of(finished))))
    root = tmp_path / "run"
    shutil.copytree(finished, root, ignore=shutil.ignore_patterns("*.png", "*.npy"))
    for path in root.glob("*/scores.parquet"):
        table = pl.read_parquet(path)
        named = pl.col("group").replace("Africa", text)
        params = pl.col("params").str.replace_all('"anywhere"', json.dumps(text), literal=True)
        table.with_columns(named, params).write_parquet(path)
    page = render_sections(linguistic_page(folders_of(root)))
    seen = Seen(page)
    assert sorted(seen.elements) == sorted(plain.elements), "it adds no element and no attribute"
    assert "script" not in {tag for tag, _ in seen.elements}
    assert "\u202e" not in page
    assert text[:3] in seen.text or text.startswith("\u202e")
