"""The section on what people say: hostile texts inert, marks in words and signs, dots where the numbers are."""

import re
from dataclasses import replace
from types import SimpleNamespace as Row

import polars as pl

from culturekit.core.schemas import CHOICE_TABLE, RATING_TABLE
from culturekit.report.people import correlation_chart, grids
from culturekit.report.write import render
from tests.report.pages import page, people


def section(text: str) -> str:
    whole = render(replace(page(), people=people(text)))
    start = whole.index('<section aria-labelledby="people"')
    return whole[start : whole.index("</section>", start)]


def test_low_cells_are_marked_in_words_and_signs_and_counts_stand_with_them() -> None:
    found = section("plain")
    assert '<td class="low2"><span class="mark" title="below 2">▼</span> 1.50 ± 0.50' in found
    assert "within 0.25, 7 images, 3 people" in found
    assert "▽ mean below 3" in found
    assert "▼ mean below 2" in found
    for said in ("4 answered, 1 failed", "6 answered, 2 unlike", "set aside, plain: 2", "−0.50", "0.20 to 0.80"):
        assert said in found


def test_a_run_without_people_has_no_such_section() -> None:
    assert "What people say" not in render(page())


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
