"""The sections about two routes and about what is missing."""

from dataclasses import replace

from culturekit.report.provenance import MissingLine
from culturekit.report.write import render
from tests.report.pages import LACKING, full_page, page, routes


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
    told = render(replace(page(), routes=routes(stable=True), trust=None))
    assert "The ranking is not stable:" not in told
    assert "in the same order, or nearly so" in told
    none = render(replace(page(), routes=replace(routes(), ranking=()), trust=None))
    assert "there is no ranking to compare" in none


def test_a_page_with_nothing_missing_and_one_route_has_neither_section() -> None:
    text = render(page())
    assert 'id="missing"' not in text
    assert 'id="routes"' not in text
    assert not LACKING.whole
    assert MissingLine("atlas", 400, {}, 3, 3, 0, 0, 0, 0, None).whole
