"""A picture of paths shows each item once, each step, and what cuts one."""

import io
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from culturekit.core.errors import UsageError
from culturekit.kg.exchange.path_drawing import HEIGHT, WIDTH, draw_paths, drawing_of, png_of, svg_of
from culturekit.kg.inspection.explain import Explanation, explain
from tests.kg.worlds import Said, concept_of, make_graph

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def explained(tmp_path: Path) -> Explanation:
    world = [
        Said(2, "P279", 1), Said(3, "P279", 1), Said(4, "P31", 2), Said(4, "P31", 3), Said(4, "P279", 3),
        Said(4, "P31", 1, "deprecated"), Said(4, "P17", 30), Said(3, "P279", 2),
    ]  # fmt: skip
    labels = {2: {"en": "a <b> & \x01 c"}, 4: {"en": "a label that is much too long for its box"}}
    return explain(make_graph(tmp_path / "w", world, items=[1], labels=labels), "Q4", concept_of({1: None}))


def test_boxes_and_arrows_are_those_of_the_paths(explained: Explanation) -> None:
    drawing = drawing_of(explained)
    assert sorted(drawing.boxes) == ["Q1", "Q2", "Q3", "Q4"]
    assert set(drawing.arrows) == {
        ("Q1", "Q2", "P279", False), ("Q1", "Q3", "P279", False), ("Q2", "Q3", "P279", False),
        ("Q2", "Q4", "P31", False), ("Q3", "Q4", "P279, P31", False), ("Q1", "Q4", "P31", True),
    }  # fmt: skip
    across = {qid: x for qid, (x, _, _) in drawing.boxes.items()}
    assert across["Q1"] < across["Q2"] < across["Q3"] < across["Q4"], "as far from the left as the longest path"
    for x, y, _ in drawing.boxes.values():
        assert WIDTH / 2 <= x <= drawing.width - WIDTH / 2
        assert HEIGHT / 2 <= y <= drawing.height - HEIGHT / 2
    assert len({(x, y) for x, y, _ in drawing.boxes.values()}) == len(drawing.boxes)


def test_the_svg_is_one_any_reader_takes(explained: Explanation) -> None:
    drawing = drawing_of(explained)
    picture = ElementTree.fromstring(svg_of(drawing))
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert "a <b> & \ufffd c" in texts
    assert "a label that is much to…" in texts
    assert "Q4 is an artifact of any" in texts
    assert len(list(picture.iter(f"{SVG}line"))) == len(drawing.arrows)
    assert sum("stroke-dasharray" in line.attrib for line in picture.iter(f"{SVG}line")) == 1
    assert svg_of(drawing) == svg_of(drawing_of(explained))


def test_the_png_has_the_same_size(explained: Explanation) -> None:
    drawing = drawing_of(explained)
    with Image.open(io.BytesIO(png_of(drawing))) as image:
        assert image.size == (drawing.width, drawing.height)
        assert len(image.getcolors(1 << 20) or ()) > 4


def test_only_svg_and_png_are_drawn(explained: Explanation, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.svg or \.png"):
        draw_paths(explained, tmp_path / "x.gif")
    draw_paths(explained, tmp_path / "x.SVG")
    assert (tmp_path / "x.SVG").read_bytes() == svg_of(drawing_of(explained))
