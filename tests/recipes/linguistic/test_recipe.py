"""The recipe `linguistic`: what it wires, small runs, and what its page of the documentation says."""

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.errors import UsageError
from culturekit.core.package_data import shipped
from culturekit.core.schemas import PROMPTS
from culturekit.core.stage import Work
from culturekit.core.tables import write_table
from culturekit.recipes.linguistic.page import linguistic_page
from culturekit.recipes.linguistic.prompts import joined_prompts_stage
from culturekit.recipes.linguistic.recipe import Linguistic
from culturekit.recipes.run_recipe import report_of
from culturekit.report.report_stage import folders_of
from culturekit.report.sections import render_sections
from tests.command_line import culturekit
from tests.conftest import stages_of
from tests.recipes.linguistic.test_prompts import DEBIAN
from tests.recipes.shipped_recipes import run_small
from tests.report.pages import Elements
from tests.typed_pages import ROOT, typed


def linguistic(*stated: str) -> Linguistic:
    recipe = load_any_recipe(find_recipe("linguistic"), stated)
    assert isinstance(recipe, Linguistic)
    return recipe


def test_each_kind_of_prompts_has_its_own_scores(tmp_path: Path) -> None:
    parts = {"dialects": {"dialects", "tones-ita", "true-tones"}, "neutral": {"neutral-open", "true-neutral-open"},
             "specific": {"questions-open", "judged-modern", "true-ratings"}}  # fmt: skip
    for kind, own in parts.items():
        names = {stage.name for stage in stages_of(linguistic(f"prompts.kinds=[{kind}]"), tmp_path)}
        assert own <= names
        assert names.isdisjoint(set().union(*parts.values()) - own)
    names = {stage.name for stage in stages_of(linguistic("people.simulated=null"), tmp_path)}
    assert {"to-rate-persons", "to-rate-places", "tones-ita"} <= names, "forms wait where nobody answers"
    assert names.isdisjoint({"rated-persons", "ratings", "judged-modern"})


def test_the_grid_of_the_paper(tmp_path: Path) -> None:
    """210 neutral prompts by 9, 9 and 4 images of three models are 4,620; 42 by 4 are 168."""
    recipe = linguistic("prompts.nouns=30", "prompts.kinds=[neutral]")
    assert recipe.prompt_count() == 210
    assert [recipe.plan_of(model).slots for model in recipe.models] == [9, 9, 4]
    assert sum(210 * recipe.plan_of(model).slots for model in recipe.models) == 4620
    assert linguistic("prompts.kinds=[specific]").prompt_count() == 42
    assert 42 * recipe.plan_of(recipe.models[2]).slots == 168


def test_another_dialect_is_named_once(tmp_path: Path) -> None:
    """What the prompts are called is what the scores compare."""
    of_both = "prompts.pairs={standard: British, other: Singlish%s}"
    with pytest.raises(UsageError, match=r"no pairs of British and Singlish.*SAE and AAE or Singlish"):
        stages_of(linguistic(of_both % "", "prompts.kinds=[dialects]"), tmp_path)
    lists = tmp_path / "pairs.yaml"
    lists.write_text(shipped("recipes/linguistic/linguistic_lists.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    recipe = linguistic(of_both % f", lists: {lists}", "prompts.kinds=[dialects]")
    every = linguistic(of_both.replace("British", "SAE") % "", f"prompts.lists={lists}")
    given = {stage.name: stage.inputs for stage in stages_of(every, tmp_path)}
    assert {given[f"prompts-{kind}"]["lists"] for kind in ("dialects", "neutral", "specific")} == {lists}
    stages = {stage.name: stage for stage in stages_of(recipe, tmp_path)}
    for name in ("prompts-dialects", "dialects", "true-dialects"):
        assert (stages[name].options["standard"], stages[name].options["other"]) == ("British", "Singlish")


def test_a_kind_without_prompts_is_refused_before_images_of_the_others(work: Work, tmp_path: Path) -> None:
    empty = write_table(tmp_path, PROMPTS, pl.DataFrame(schema=PROMPTS.schema))
    with pytest.raises(UsageError, match=f"no prompts of dialects.*became of proposals stands in {tmp_path}"):
        joined_prompts_stage({"dialects": empty}).run(work)


def test_given_dialects_are_those_that_are_compared(tmp_path: Path) -> None:
    row = {"text": "A cup.", "benchmark": "b", "kind": "dialect", "language": "en", "template_id": "t"}
    path = write_table(tmp_path, PROMPTS, pl.DataFrame(
        [{"prompt_id": group, "group": group, **row} for group in ("SAE", "SgE")], schema=PROMPTS.schema
    ))  # fmt: skip
    with pytest.raises(UsageError, match="dialects: no prompt is in AAE; found SAE, SgE"):
        linguistic(f"prompts.dialects={path}")
    with pytest.raises(UsageError, match="neutral: prompts with a group are held against prompts without"):
        linguistic(f"prompts.neutral={path}")
    assert linguistic(f"prompts.dialects={path}", "prompts.pairs.other=SgE").prompts.dialects == str(path)


SMALL = ("prompts.nouns=3", "images.slots=5", "people.places=150")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_small("linguistic", SMALL, tmp_path_factory.mktemp("linguistic"))[0]


def scores(folder: Path, name: str, **where: str | None) -> pl.DataFrame:
    table = pl.read_parquet(folder / name / "scores.parquet")
    said = ("of", "pool", "labels", "detector", "tone", "criterion", "first")
    table = table.with_columns(pl.col("params").str.json_path_match(f"$.{one}").alias(one) for one in said)
    return table.filter(pl.col(column).eq_missing(pl.lit(value, pl.String)) for column, value in where.items())


@pytest.mark.slow
def test_the_report_has_a_section_for_every_table_of_the_paper(finished: Path) -> None:
    page = (finished / "report/report.html").read_text(encoding="utf-8")
    for anchor in ("dialects", "tones", "histogram", "neutral", "ranking", "modern", "questions", "ratings", "asked"):
        assert f'id="{anchor}"' in page
    for told in (
        "car / whip", "a plaza in America", "printed in the paper", "take it that 5% of answers",
        "sees 4 of 10 swatches", "sees 10 of 10 swatches", "cannot see dark skin", "0.27 to 0.41",
    ):  # fmt: skip
        assert told in page
    assert report_of(finished).kind == "linguistic-report"


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("text", ["<img src=x onerror=alert(1)>", "\u202e{{7*7}}", "=cmd|' /C calc'!A0", "Z" * 9_000])
def test_hostile_groups_and_pools_are_text_on_the_page(finished: Path, tmp_path: Path, text: str) -> None:
    """Names of groups come from a user's lists, names of pools and of dialects from the recipe."""
    plain = Elements(render_sections(linguistic_page(folders_of(finished))))
    root = tmp_path / "run"
    shutil.copytree(finished, root, ignore=shutil.ignore_patterns("*.png", "*.npy"))
    for path in root.glob("*/scores.parquet"):
        table = pl.read_parquet(path)
        named = pl.col("group").replace("Africa", text)
        params = pl.col("params").str.replace_all('"anywhere"', json.dumps(text), literal=True)
        table.with_columns(named, params).write_parquet(path)
    page = render_sections(linguistic_page(folders_of(root)))
    seen = Elements(page)
    assert sorted(seen.names) == sorted(plain.names), "it adds no element and no attribute"
    assert "script" not in {tag for tag, _ in seen.tags}
    assert "\u202e" not in page
    assert text[:3] in seen.text or text.startswith("\u202e")


PAGE = ROOT / "docs/linguistic.md"


def test_a_proposer_of_the_recipe_is_priced_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-nobody")
    answer = culturekit("plan", str(ROOT / "recipes/linguistic.yaml"), "--set", "prompts.pairs.proposer=openai:gpt-4o",
                        "--set", "people.simulated=null", cwd=tmp_path)  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert re.search(r"^prompts-dialects +to do +3 questions +3 +[\d,]+ +0\.07", answer.stdout, re.MULTILINE), (
        answer.stdout
    )


def test_prompts_are_built_as_the_page_says(tmp_path: Path) -> None:
    """The simulated model answers in place of the paid one; without WordNet its lines are left out."""
    for name in ("sae", "aae"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("car whip home crib shoes kicks bread money")
    for words in typed(PAGE)[2:]:
        if words[0] != "prompts" or any("wordnet" in word or "review" in word for word in words):
            continue
        answer = culturekit(*(re.sub("^openai:.*", "simulated", word) for word in words), cwd=tmp_path)
        assert answer.returncode == 0, (words, answer.stderr)
    sizes = {name: pl.read_parquet(tmp_path / name / "prompts.parquet").height for name in ("specific", "neutral")}
    assert sizes == {"specific": 42, "neutral": 210}
    fell = pl.read_parquet(tmp_path / "proposed/dialect_pairs.parquet")
    assert {"kept", "not in the corpus"} <= set(fell["outcome"])


@pytest.mark.skipif(not (DEBIAN / "data.noun").is_file(), reason="needs Debian's wordnet-base")
def test_nouns_of_wordnet_are_looked_at_as_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("nltk", reason="needs the extra sources")
    for words in typed(PAGE)[2:]:
        if words[0] == "prompts" and any("wordnet" in word or "review" in word for word in words):
            named = [str(DEBIAN) if word == "/usr/share/wordnet" else word for word in words]
            answer = culturekit(*named, cwd=tmp_path)
            assert answer.returncode == 0, (words, answer.stderr)
            sheet = tmp_path / "candidates/review.csv"
            if sheet.is_file() and "bakery" in (text := sheet.read_text(encoding="utf-8")):
                sheet.write_text(re.sub(r"(?m)^(bakery\.n\.\d+,.*),,$", r"\1,accept,", text), encoding="utf-8")
    assert set(pl.read_parquet(tmp_path / "reviewed/prompts.parquet")["artifact_id"]) == {"bakery"}
