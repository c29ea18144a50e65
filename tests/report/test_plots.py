"""Charts, heat maps, and the map of the world."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from culturekit.core.roles import Role
from culturekit.core.schemas import IMAGES, VALUES
from culturekit.kg.countries import countries
from culturekit.report.charts import diversity_chart
from culturekit.report.countries import HEIGHT, WIDTH, country_paths, equal_earth, projected
from culturekit.report.gallery import Gallery, values_of
from culturekit.report.plots import Chart, ChartKind, Point, plot
from culturekit.report.run_folders import RunFolders
from culturekit.report.sections import Cell, Grid, Section, drawn, matrix_picture, number
from tests.recipes.built import stored
from tests.report.pages import line

POINTS: list[Point | None] = [(0.2, 0.1, 0.3), (0.5, None, None), None, (float("nan"), None, None)]
OTHERS: list[Point | None] = [(1.0, 0.9, 1.1)] * 4
HOSTILE = '"><script>pwned()</script><!-- \u202e'
ABOUT = dict.fromkeys(("concept", "country", "group", "prompt_id", "repeat"))


def tree(kind: ChartKind, text: str = "row") -> ElementTree.Element:
    chart = Chart(kind, text, swatches=("ff0000",))
    return ElementTree.fromstring(plot(chart, "name", text, (text, "b", "c", "d"), [(text, POINTS), ("x", OTHERS)]))


@pytest.mark.parametrize(("kind", "intervals"), [("dots", 5), ("bars", 5), ("curves", 0)])
def test_each_known_score_is_drawn_once_and_what_is_missing_is_not(kind: ChartKind, intervals: int) -> None:
    seen = list(tree(kind).iter())
    shapes = ("circle", "polygon", "rect")
    # The key of dots has a mark a column, that of curves a mark a row; a row of curves has a band besides.
    marks = [one for one in seen if one.tag in shapes and re.fullmatch(r"k\d", one.get("class", ""))]
    assert len(marks) == 6 + {"dots": 4, "curves": 2, "bars": 0}[kind]
    assert (
        sum(one.tag == "line" and one.get("class") in {"k0", "k1", "k2", "k3", "limits"} for one in seen) == intervals
    )
    whole = ElementTree.tostring(tree(kind), encoding="unicode")
    assert "nan" not in whole
    assert "style=" not in whole, "the policy of the page forbids it"


@pytest.mark.parametrize("kind", ["dots", "curves", "bars"])
def test_hostile_names_stay_text(kind: ChartKind) -> None:
    hostile, plain = tree(kind, HOSTILE), tree(kind)
    assert [one.tag for one in hostile.iter()] == [one.tag for one in plain.iter()]
    assert "\u202e" not in "".join(hostile.itertext())


def test_the_longest_name_that_a_model_may_have_is_never_cut() -> None:
    name = "m" * 64
    row = [(name, [(0.5, 0.4, 0.6)])]
    drawings = (
        plot(Chart("dots"), "n", "t", (name, "other"), [(name, [(0.5, 0.4, 0.6), (0.5, None, None)])]),
        plot(Chart("bars"), "n", "t", ("a",), row),
        matrix_picture([f"exaggeration by {name}"], {}),
        diversity_chart([line(name, 0.5, None, free=None, similarity=1.0)]),
    )
    assert [drawing.count(name) for drawing in drawings] == [2, 1, 2, 1]


def test_charts_of_one_scale_place_equal_values_alike_and_larger_ones_further() -> None:
    def placed(values: list[float], among: list[Point]) -> list[float]:
        lines = [(f"{value}", [(value, None, None)]) for value in values]
        svg = plot(Chart("dots"), "n", "t", ("a",), lines, among=among)
        return [float(x) for x in re.findall(r'class="k0" cx="([\d.]+)"', svg)]

    both: list[Point] = [(0.1, None, None), (0.9, None, None)]
    first, second = placed([0.1, 0.5], both), placed([0.5, 0.9], both)
    assert first[1] == second[0]
    assert first[0] < first[1] < second[1]


def test_a_chart_stands_over_its_table_which_folds_and_a_heat_map_is_its_table() -> None:
    rows = tuple((Cell(name), number(value, value - 0.1, value + 0.1)) for name, value in (("m", 0.3), ("n", 0.5)))
    grid = Grid("Scores", ("model", "ALIGN"), rows)
    section = Section("a", "t", "l", (drawn(grid, "dots", "ALIGN"), grid, drawn(grid, "heat")))
    ((caption, chart),) = section.charts()
    assert (caption, [table.folds for table in section.tables]) == ("Scores", [True, False, False])
    assert {"0.300", "0.500", "m", "n"} <= set(re.findall(r">([^<]*)<", chart))
    assert [row[1].shade for row in section.tables[2].rows] == [0.0, 1.0]
    assert section.tables[2].caption == "Scores; shaded from 0.30 to 0.50"


def value(model: str, item: str, score: float, of: str) -> dict[str, Any]:
    about = {"metric": "align", "model": model, "benchmark": "x", "params": f'{{"of":"{of}"}}'}
    return ABOUT | about | {"item": item, "value": score}


@pytest.fixture
def run(tmp_path: Path) -> RunFolders:
    row: dict[str, Any] = dict.fromkeys(IMAGES.schema) | {"model": "m", "rewriter": "none", "provider_params": "{}"}
    row |= {"prompt_sent": "a cup", "sha256": "0" * 64, "width": 64, "height": 64}
    images = [{"image_id": f"i{n}", "path": f"files/{n}.png", "status": "ok" if n < 6 else "refused"} for n in range(7)]
    stored(tmp_path / "images-m", IMAGES, [row | image for image in images])
    judged = [value("m", f"i{n}", n / 10, "judge") for n in range(7)]
    people = [value("m", f"i{n}", 0.5, "people") for n in range(7)] + [value("m", "nowhere", 9.0, "people")]
    stored(tmp_path / "scored", VALUES, [*judged, *people])
    return RunFolders(tmp_path, ("m",), ("images-m", "scored"))


def test_examples_are_the_best_the_worst_and_where_two_differ_most_among_images_that_were_made(run: RunFolders) -> None:
    shown, role = Gallery(run), Role("scored", "scores")
    judge, people = (values_of(run, role, {"metric": "align", "of": who}) for who in ("judge", "people"))
    (strip,) = shown.strip("Ends", shown.ends(judge, ["m", "absent"], most=2))
    found = {head: [(one.source, one.lines) for one in pictures] for head, pictures in strip.groups}
    assert found == {
        "m, highest": [("images-m/files/5.png", ("0.5",)), ("images-m/files/4.png", ("0.4",))],
        "m, lowest": [("images-m/files/0.png", ("0",)), ("images-m/files/1.png", ("0.1",))],
    }
    (far,) = shown.strip("Apart", shown.apart(("judge", judge), ("people", people), ["m"], most=1))
    assert [(one.source, one.prompt, one.lines) for one in far.pictures] == [
        ("images-m/files/0.png", "a cup", ("judge 0", "people 0.5"))
    ]
    assert shown.strip("None", shown.ends(judge, ["absent"])) == ()


CAPITALS = {
    "BR": (-47.9, -15.8), "IN": (77.2, 28.6), "NG": (7.5, 9.1), "TR": (32.9, 39.9), "RU": (37.6, 55.8),
    "US": (-77.5, 38.9), "AU": (149.1, -35.3), "JP": (139.7, 35.8), "FR": (2.35, 48.9), "IT": (12.5, 41.9),
}  # fmt: skip


def crossings(path: str, x: float, y: float) -> int:
    """Count the edges of a path that a ray to the right of a point crosses."""
    count = 0
    for ring in re.findall(r"M([^Z]*)Z", path):
        points = [tuple(map(float, point.split())) for point in ring.split("L")]
        for (x1, y1), (x2, y2) in zip(points, [*points[1:], points[0]], strict=True):
            if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
                count += 1
    return count


@pytest.mark.parametrize("code", CAPITALS)
def test_a_capital_lies_in_its_country_and_in_no_other(code: str) -> None:
    x, y = projected(CAPITALS[code])
    inside = {other for other, path in country_paths().items() if crossings(path, x, y) % 2}
    assert inside == {code}


def test_the_projection_keeps_areas() -> None:
    def area(latitude: float) -> float:
        step = 0.01
        (left, low), (right, _) = equal_earth(-step, latitude), equal_earth(step, latitude)
        return (right - left) * (equal_earth(0, latitude + step)[1] - low)

    from math import cos, radians

    for latitude in (10.0, 35.0, 60.0, 80.0):
        assert area(latitude) / area(0.0) == pytest.approx(cos(radians(latitude + 0.005)), rel=1e-3)


def test_land_lies_on_the_map_no_line_runs_across_it_and_known_countries_are_there() -> None:
    heights = [float(y) for path in country_paths().values() for _, y in re.findall(r"([-0-9]+) ([-0-9]+)", path)]
    assert min(heights) >= -1
    assert max(heights) <= HEIGHT + 1
    for ring in re.findall(r"M([^Z]*)Z", "".join(country_paths().values())):
        across = [float(point.split()[0]) for point in ring.split("L")]
        assert max(abs(a - b) for a, b in zip(across, [*across[1:], across[0]], strict=True)) < WIDTH / 4
    assert set(countries()) - set(country_paths()) <= {"SG", "HK", "MO", "MT", "BH", "MV", "MU"}
