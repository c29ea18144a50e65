"""Sections of a page: tables, kernels, variety, faithfulness, people, and both routes."""

import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace as Row
from typing import Any

import polars as pl
import pytest

from culturekit.core import schemas
from culturekit.core.errors import IntegrityError
from culturekit.core.inputs import Files
from culturekit.core.schemas import CHOICE_TABLE, RATING_TABLE, SCORES
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.report.headline import waiting_forms
from culturekit.report.people import correlation_chart, grids
from culturekit.report.provenance import MissingLine, every_caveat
from culturekit.report.realism import Cell as VarietyCell
from culturekit.report.realism import VarietyColumn, disagreements, ranks, significant, within_in, words
from culturekit.report.run_folders import RunFolders, with_params
from culturekit.report.sections import Cell, Grid, Section, explained, looked_up, score_grid, side_by_side
from culturekit.report.write import breakable, render
from culturekit.scores.within import WithinOptions, within
from tests.conftest import stage_here
from tests.recipes.built import built, score, scores_row, texts
from tests.report.pages import LACKING, faithfulness, full_page, page, people, routes
from tests.scores.test_qvs import PROMPTS, matches


def test_a_value_without_interval_and_a_dash_say_so(tmp_path: Path) -> None:
    bare = scores_row("align", value=0.5, model="bare") | {"ci_low": None, "ci_high": None}
    held = score("align", 0.4) | {"ci_low": 0.3, "ci_high": 0.5}
    table = pl.DataFrame([bare, held], schema=SCORES.schema)
    rows: Any = [(model, {"model": model}, table) for model in ("m", "bare", "absent")]
    both = explained(score_grid("Scores", "model", [("ALIGN", {"metric": "align"})], rows))
    assert [row[1].sub for row in both.rows] == ["0.30 to 0.50", "no interval", ""]
    assert both.caption == "Scores; a dash: nothing to score"
    alone = explained(score_grid("Scores", "model", [("ALIGN", {"metric": "align"})], rows[1:2]))
    assert (alone.caption, alone.rows[0][1].sub) == ("Scores, without intervals", "")


def noting(caveat: str, work: Work) -> Outcome:
    return Outcome({}, notes={"caveat": caveat})


def test_the_page_says_all_that_a_stage_says_must_be_known(tmp_path: Path) -> None:
    caveats = {"a": "It is simulated.", "b": "It is simulated. One rater.", "c": "", "d": "One rater."}
    for name, caveat in caveats.items():
        built(Stage(name, "kept", 1, partial(noting, caveat), {}), tmp_path / name)
    run = RunFolders(tmp_path, (), ("a", "b", "c", "d"))
    assert every_caveat(run) == ("It is simulated.", "One rater.")


def handed_out(work: Work) -> Outcome:
    return Outcome({"annotation_key": 510, "items": 450, "sheets": 12})


def test_forms_that_nobody_answered_are_named_with_their_hours(tmp_path: Path) -> None:
    form = built(Stage("to-rate", "annotate-export", 1, handed_out, {}), tmp_path / "to-rate")
    assert list(waiting_forms(RunFolders(tmp_path, (), ("to-rate",)))) == [
        "Nobody has answered the form to-rate yet: 510 answers on 12 sheets, about 2.5 hours. "
        f"culturekit annotate serve {tmp_path.name}/to-rate asks for them."
    ]
    built(Stage("rated", "annotate-import", 1, partial(noting, ""), {"project": form}), tmp_path / "rated")
    assert list(waiting_forms(RunFolders(tmp_path, (), ("to-rate", "rated")))) == []


def test_columns_of_words_begin_at_the_left_and_numbers_end_at_the_right() -> None:
    rows = tuple(tuple(map(Cell, row)) for row in (("5", "–", "0.5", "< 0.001"), ("4", "Mostly right", "0.4", "–")))
    assert Grid("What it means", ("rating", "presence", "share", "p"), rows).words == {1}


def test_two_scores_are_never_shown_as_none() -> None:
    rows = [score("align", 0.5, labels="corrected", pool=pool) for pool in ("in-region", "out-of-region")]
    table = with_params(pl.DataFrame(rows, schema=SCORES.schema), labels="labels")
    with pytest.raises(IntegrityError, match=r"2 scores stand where the page shows one.*out-of-region"):
        looked_up(table, model="m", labels="corrected")


def test_tables_with_the_same_rows_stand_side_by_side_evenly_as_far_as_they_fit() -> None:
    def shown(caption: str, columns: int, row: str = "m") -> Grid:
        heads = ("model", *map(str, range(columns)))
        return Grid(caption, heads, ((Cell(row), *(Cell(f"{caption}{number}", "low") for number in range(columns))),))

    three = [shown(name, 3) for name in "abcd"]
    first, second = side_by_side(three)
    assert (first.parts, second.parts) == ((("a", 3), ("b", 3)), (("c", 3), ("d", 3)))
    assert first.columns == ("model", "0", "1", "2", "0", "1", "2")
    assert texts(first) == [["m", "a0", "a1", "a2", "b0", "b1", "b2"]]
    apart = [shown("a", 5), shown("b", 5), shown("c", 2), shown("d", 2, row="another")]
    assert list(side_by_side(apart)) == apart
    dashes = replace(three[0], rows=((Cell("m"), Cell("–"), Cell("–"), Cell("–")),))
    section = Section("anchor", "Title", "Lead.", (dashes, three[1]))
    assert [grid.caption for grid in section.tables] == ["a dash: nothing to score"]


def kernels_of(**changes: Any) -> tuple[str, list[tuple[list[str], list[str]]]]:
    """Render the section of kernels; give it with the two rows above the numbers of each table."""
    whole = render(replace(page(), **changes))
    text = whole[(begin := whole.index('id="kernels"')) : whole.index("</section>", begin)]
    heads = re.findall(r"<thead>(.*?)</thead>", text.replace("<bdi>", "").replace("</bdi>", ""), re.DOTALL)
    groups = [re.findall(r'"colgroup"[^>]*>([^<]+)', head) for head in heads]
    return text, [(of, re.findall(r'"col"[^>]*>([^<]+)', head)[1:]) for of, head in zip(groups, heads, strict=True)]


def test_kernels_stand_side_by_side_and_concepts_are_closed() -> None:
    table = page().tables[0]
    text, (whole, *closed) = kernels_of(tables=(table, replace(table, kernel="uniform")))
    assert whole == (["country", "uniform"], ["mapped", "true"] * 2)
    assert [groups for groups, _ in closed] == [["cuisine"]] * 2
    assert re.findall(r'<details[^>]* data-kernel="([^"]+)"', text) == ["country", "uniform"]
    assert "data-concept" not in text.partition("<details")[0]
    assert text.count("<details") == 2 and "<details open" not in text


def test_scores_of_two_orders_share_no_table() -> None:
    """An artifact kernel of order 2 stood beside a country kernel of order 1, .628 beside .748."""
    table = page().tables[0]
    text, heads = kernels_of(tables=(replace(table, kernel="uniform", order="q = 2"), table))
    assert [groups for groups, _ in heads[:2]] == [["country"], ["uniform"]]
    assert [f"order q = {order}, over all prompts" in text for order in (1, 2)] == [True, True]


def test_concepts_that_were_scored_apart_have_no_table_together() -> None:
    text, heads = kernels_of(tables=(replace(page().tables[0], concepts=("art", "cuisine")),))
    assert heads == [(["art", "cuisine"], ["mapped", "true"] * 2)]
    assert len(re.findall(r'<td[^>]* data-concept="(?:art|cuisine)"', text)) == text.count("<td")


def test_a_long_spec_breaks_between_its_options() -> None:
    assert breakable("simulated?a=1&b=JP,US") == "simulated?<wbr>a=1<wbr>&amp;b=JP,<wbr>US"
    assert breakable("<b>") == "&lt;b&gt;"


@pytest.mark.parametrize(("value", "text"), [
    (0.0, "0.000"), (1.2345, "1.234"), (-0.5, "−0.500"), (12.345, "12.35"), (207.84, "207.8"), (76934.2, "76934"),
    (-2853.1, "−2853"), (0.00012, "0.00012"), (9.093e-05, "0.000091"), (math.nan, "–"), (None, "–"),
])  # fmt: skip
def test_numbers_of_any_size_are_short(value: float | None, text: str) -> None:
    assert significant(value) == text


def test_equal_values_share_a_rank() -> None:
    assert ranks({"a": 0.5, "b": 0.7, "c": 0.7}, descending=True) == {"a": 3, "b": 1, "c": 1}
    assert ranks({"a": 0.5, "b": 0.7, "c": 0.7}, descending=False) == {"a": 1, "b": 2, "c": 2}


def column(title: str, order: dict[str, int]) -> VarietyColumn:
    return VarietyColumn(title, "", "", {model: VarietyCell("", "", 1, 1) for model in order}, order)


def test_the_model_that_only_looks_varied_is_named() -> None:
    shown = column("VS/8", {"wide": 1, "noise": 2, "narrow": 3})
    looks = column("mean LPIPS", {"wide": 2, "noise": 1, "narrow": 3})
    assert list(disagreements(shown, [looks])) == ["By mean LPIPS noise is number 1 of 3 in variety, by VS/8 number 2."]
    assert list(disagreements(shown, [shown])) == ["By VS/8 the models rank as by VS/8."]
    assert list(disagreements(shown, [column("x", {"wide": 1})])) == []


def test_an_extractor_without_weights_says_so() -> None:
    assert words({"name": "embedded", "weights": "none"}) == "embedded, no weights"
    assert words({"name": "inception features", "weights": "ab" * 32}).endswith("weights abababababab")


@pytest.mark.parametrize(("main", "other"), [(1.0, math.inf), (math.inf, 1.0)])
def test_diversity_within_countries_is_that_of_the_main_order(main: float, other: float, tmp_path: Path) -> None:
    matches({("a", "in-1"): ["xxxy", "xyyy"], ("a", "br-1"): ["xxyz"]}).write_parquet(tmp_path / "matches.parquet")
    empty = {name: column.dtype for name, column in schemas.PROMPTS.columns.items() if name not in PROMPTS.columns}
    PROMPTS.with_columns(pl.lit("x").cast(dtype).alias(name) for name, dtype in empty.items()).write_parquet(
        tmp_path / "prompts.parquet"
    )
    given = Files([tmp_path / "matches.parquet"]), tmp_path / "prompts.parquet"
    shown = []
    for name, orders in {"alone": (), "both": (other,)}.items():
        stage = within.stage(*given, options=WithinOptions(q=main, other_orders=orders, size=4))
        stage_here(stage, tmp_path / name / "within")
        found = within_in(RunFolders(tmp_path / name, ["a"], ["within"]), ["a"])
        assert found is not None
        shown.append([found.means["a"].text, *(row[1]["a"][0].text for row in found.rows)])
    assert shown[0] == shown[1]


def test_each_judge_has_its_table_and_chart_and_what_people_put_right_and_what_is_missing_stand_with_them() -> None:
    assert "Quality and faithfulness" not in render(page())
    html = render(replace(page(), faithfulness=faithfulness("mirage", "atlas")))
    text = html.partition('<section aria-labelledby="faithfulness">')[2].partition("</section>")[0]
    assert "no score" in text
    assert "No scorer compared image and text." in text
    assert "2 of them got no answer" in text
    assert "95 % intervals for these prompts" in text
    assert "95 % intervals for prompts like these" in text
    assert set(re.findall(r'href="([^"]+)"', text)) == {"#shots-mirage", "#shots-atlas"}
    assert text.count("<svg") == 2
    assert len(set(re.findall(r'<title id="([^"]+)"', text))) == 2
    assert text.count("<caption>") == 2 + 1 + 1 + 2 + 1 + 1, (
        "tables, concepts, differences, questions twice, judges, people"
    )
    row = re.search(r'<tr data-model="mirage">.*?</tr>', text)
    assert row is not None
    assert re.sub(r"<[^>]+>", " ", row[0]).split() == ["mirage", "0.500", "0.400–0.600", "12", "48", "3", "2", "1", "4"]
    assert "Every number here that people did not put right is a model" in text
    text = text.partition("Put right by people")[2]
    row = re.search(r'<tr data-model="mirage">.*?</tr>', text)
    assert row is not None
    plain = re.sub(r"<[^>]+>", " ", row[0]).split()
    assert plain[:7] == ["mirage", "art", "DSG", "seer-1", "0.700", "0.680–0.720", "0.410"]
    assert plain[-3:] == ["in-region", "one", "rater"]
    assert "3: people marked too few items" in text


def test_low_cells_are_marked_in_words_and_signs_and_counts_stand_with_them() -> None:
    assert "What people say" not in render(page())
    whole = render(replace(page(), people=people("plain")))
    found = whole.partition('<section aria-labelledby="people"')[2].partition("</section>")[0]
    assert '<td class="low2"><span class="mark" title="below 2">▼</span> 1.50 ± 0.50' in found
    assert "within 0.25, 7 images, 3 people" in found
    assert "▽ mean below 3" in found
    assert "▼ mean below 2" in found
    for text in ("4 answered, 1 failed", "6 answered, 2 unlike", "set aside, plain: 2", "−0.50", "0.20 to 0.80"):
        assert text in found


def test_pools_are_series_and_a_metric_without_scatter_says_so() -> None:
    lines = tuple(
        Row(rating="realism", metric=metric, pool=pool, spearman=value, low=low, high=high) for metric, pool, value,
        low,
        high in (("quality, s", "IN", 0.0, -0.5, 0.5), ("quality, s", "JP", 1.0, None, None),
            ("margin", "JP", None, None, None))
    )  # fmt: skip
    chart = correlation_chart(lines, rating="realism", number=1)
    shown = re.findall(r">([^<]+)</text>", chart)
    assert [text for text in shown if text in {"IN", "JP", "quality, s", "margin", "0.000", "1.000", "no score"}] == [
        "IN", "JP", "quality, s", "0.000", "1.000", "margin", "no score",
    ]  # fmt: skip
    assert chart.count('<line class="k0"') == 1
    assert '<line class="k1"' not in chart, "no interval, no line"


def rating(model: str, country: str, pool: str, mean: float) -> dict[str, object]:
    return {
        "scheme": "cube", "criterion": "realism", "pool": pool, "model": model, "concept": "art", "country": country,
        "mean": mean, "sd": 0.5, "within": None, "items": 4, "annotators": 2, "answers": 8,
        "mark": "below 3" if mean < 3 else None,
    }  # fmt: skip


def test_people_at_home_share_a_table_and_other_pools_have_their_own() -> None:
    rows = [rating("a", "IN", "IN", 4), rating("a", "JP", "JP", 2), rating("a", "JP", "IN", 3)]
    choices = [
        {"scheme": "cube", "criterion": "belongs", "pool": "IN", "model": model, "concept": "art", "country": "IN",
         "choice": choice, "rate": 1.0, "items": 4, "answers": 8}
        for model, choice in (("a", "yes"), ("b", "no"))
    ]  # fmt: skip
    rated, chosen = pl.DataFrame(rows, schema=RATING_TABLE.schema), pl.DataFrame(choices, schema=CHOICE_TABLE.schema)
    shares, home, away = grids(rated, chosen)
    assert (home.who, home.countries) == ("people of each country", ("IN", "JP"))
    assert [one.mean if one else None for one in home.rows[0][2]] == [4, 2]
    assert (away.who, away.countries) == ("the pool IN, of other countries", ("JP",))
    first, second = (row[2][0] for row in shares.rows)
    assert first is not None
    assert second is not None
    assert first.shares == {"yes": 1.0, "no": 0.0}
    assert second.shares == {"yes": 0.0, "no": 1.0}


def test_both_routes_stand_side_by_side_and_what_is_missing_is_counted() -> None:
    text = render(full_page())
    for shown in ("0.711", "0.661–0.761", "0.422", "mapped", "tagged", "n = 80, row 1 of routes/scores.parquet"):
        assert shown in text
    assert "at most 96 images of each model and concept" in text
    assert "What neither can tell" in text
    assert "Agreement is no accuracy" in text
    section = text[text.index('id="missing"') :]
    for shown in (">400<", ">5<", "5 atlas", "2 of 3", ">35<", ">11<"):
        assert shown in section


def test_an_unstable_ranking_is_told_and_a_stable_one_too() -> None:
    assert "The ranking is not stable:" in render(replace(page(), routes=routes(), trust=None))
    shown = render(replace(page(), routes=routes(stable=True), trust=None))
    assert "The ranking is not stable:" not in shown
    assert "in the same order, or nearly so" in shown
    none = render(replace(page(), routes=replace(routes(), ranking=()), trust=None))
    assert "there is no ranking to compare" in none
    plain = render(page())
    assert 'id="missing"' not in plain
    assert 'id="routes"' not in plain
    assert not LACKING.whole
    assert MissingLine("atlas", 400, {}, 3, 3, 0, 0, 0, 0, None).whole
