"""The sections about two routes and about what is missing."""

from dataclasses import replace

import pytest

from culturekit.report.provenance import MissingLine
from culturekit.report.run_folders import Figure
from culturekit.report.trust import AgreementLine, Parting, RankLine, RouteTable, TwoRoutes
from culturekit.report.write import ReportData, render
from tests.report.pages import HOSTILE, page
from tests.report.test_report import Elements

COUNTS = {
    "common": 96, "named_a": 96, "named_b": 80, "abstained_a": 0, "abstained_b": 7, "none_shown_a": 0,
    "none_shown_b": 5, "no_answer_a": 0, "no_answer_b": 4, "images_a": 400, "images_b": 96,
}  # fmt: skip


def figure(value: float, row: int) -> Figure:
    return Figure(value, value - 0.05, value + 0.05, 80, row)


def routes(text: str = "atlas", *, stable: bool = False) -> TwoRoutes:
    """What two routes say of one model; every text is the same one."""
    pair = (figure(0.711, 1), figure(0.422, 2))
    return TwoRoutes(
        judge=text,
        sample=96,
        tables=(
            RouteTable(text, "Diversity VS/8", ("country", "uniform"), ((text, (pair, (None, None))),)),
            RouteTable(None, "Diversity VS/8", ("country", "uniform"), ((text, (pair, pair)),)),
        ),
        agreement=(AgreementLine(text, text, (pair, (figure(0.6, 3), None), (None, None)), COUNTS),),
        partings=(Parting(text, text, text, 9, 0.11),),
        ranking=(RankLine("vs", text, "country", 4, 1.0 if stable else 0.33, stable=stable),),
        left_out={text: 304},
        caveats=(text,),
    )


LACKING = MissingLine("atlas", 400, {"refused": 3, "missing": 2}, 2, 3, 1, 6, 4, 35, 11)


def with_sections(text: str = "atlas") -> ReportData:
    lacking = replace(LACKING, model=text, not_made={text: 5})
    return replace(page(), routes=routes(text), missing=(lacking,))


def test_both_routes_stand_side_by_side_with_their_intervals_counts_and_limits() -> None:
    text = render(with_sections())
    for shown in ("0.711", "0.661–0.761", "0.422", "mapped", "tagged", "n = 80, row 1 of routes/scores.parquet"):
        assert shown in text
    assert "at most 96 images of each model and concept" in text
    assert "What neither can tell" in text
    assert "Agreement is no accuracy" in text


def test_an_unstable_ranking_is_told_and_a_stable_one_too() -> None:
    assert "The ranking is not stable:" in render(replace(page(), routes=routes(), trust=None))
    told = render(replace(page(), routes=routes(stable=True), trust=None))
    assert "The ranking is not stable:" not in told
    assert "in the same order, or nearly so" in told
    none = render(replace(page(), routes=replace(routes(), ranking=()), trust=None))
    assert "there is no ranking to compare" in none


def test_what_is_missing_is_counted() -> None:
    text = render(with_sections())
    section = text[text.index('id="missing"') :]
    for shown in (">400<", ">5<", "5 atlas", "2 of 3", ">35<", ">11<"):
        assert shown in section


def test_a_page_with_nothing_missing_and_one_route_has_neither_section() -> None:
    text = render(page())
    assert 'id="missing"' not in text
    assert 'id="routes"' not in text
    assert not LACKING.whole
    assert MissingLine("atlas", 400, {}, 3, 3, 0, 0, 0, 0, None).whole


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_these_sections_is_shown_and_never_obeyed(text: str) -> None:
    harmless, hostile = Elements(render(with_sections())), Elements(render(with_sections(text)))
    assert [tag for tag, _ in harmless.tags] == [tag for tag, _ in hostile.tags]
    assert not [name for _, found in hostile.tags for name in found if name.startswith("on")]
