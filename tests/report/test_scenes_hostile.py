"""Text of strangers on the page about activities: it is shown, and does nothing, wherever it stands."""

import re
from html.parser import HTMLParser

import pytest

from culturekit.report.gallery import Picture, Strip
from culturekit.report.provenance import StageLine
from culturekit.report.run_folders import inert
from culturekit.report.sections import Cell, Grid, Section, SectionPage, drawn, matrix_picture, render_sections
from tests.report.hostile import DIRECTIONS, ELEMENTS, hostile_texts

TEXTS = [*ELEMENTS, *DIRECTIONS, "line\nline\r\nline", "a\0b", "Z" * 10_000, *hostile_texts()[::9]]
NEVER = re.compile("[\0\u202a-\u202e\u2066-\u2069]")


class Seen(HTMLParser):
    """What a browser would make of a page: elements with the names of their attributes, addresses, and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.addresses: set[str | None] = set()
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.addresses |= {value for name, value in attrs if name in {"href", "src", "action", "data"}}

    def handle_data(self, data: str) -> None:
        self.text += data


def page(text: str) -> str:
    """Put a text wherever a name, a phrase, a reason or a caveat stands."""
    cells = (Cell(text), Cell(text, text, 0.5), Cell(text, text, point=(0.5, 0.4, 0.6)))
    grid = Grid(text, (text, text, text), (cells, cells))
    strip = Strip(text, ((text, (Picture("reference.png", "images/a.png", text, (text,)),)),))
    picture = matrix_picture([text, "other"], {(text, "other"): 0.5})
    section = Section("models", text, text, (grid, drawn(grid, "dots", text)), picture, (strip,))
    stage = StageLine(text, text, "0" * 64, {text: text}, {text: 3}, {text: 2}, {text: 1})
    data = SectionPage(
        text, (text, text), 4, (text,), (text,), (text,), (section,), (stage,), (text,), {"culturekit": text}
    )
    return render_sections(data)


PLAIN = Seen(page("plain"))


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_hostile_texts_are_text_wherever_they_stand(text: str) -> None:
    whole = page(text)
    seen = Seen(whole)
    assert seen.elements == PLAIN.elements, "it adds no element and no attribute"
    assert "script" not in {tag for tag, _ in seen.elements}
    assert seen.addresses == {"data:,", "thumbnails/reference.png"}
    assert NEVER.search(whole) is None
    assert seen.text.count(inert(text)) >= 10, "it is shown as it is written"
    assert len(whole) < 100_000


def test_the_page_lets_nothing_run_and_asks_nobody() -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page("plain"))
    assert "default-src &#39;none&#39;" in policy
    assert "script-src &#39;none&#39;" in policy
