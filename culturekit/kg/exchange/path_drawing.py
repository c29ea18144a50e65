"""Draw the paths of an explanation: networkx lays them out, from the roots on the left to the item."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

import networkx
from PIL import Image, ImageDraw, ImageFont

from culturekit.core.atomic import write_atomically
from culturekit.core.errors import UsageError
from culturekit.kg.inspection.explain import Explanation, PathStep

WIDTH, HEIGHT = 170, 44  # of a box, in pixels
_ACROSS, _DOWN = 270, 64  # from one box to the next
_MARGIN, _LETTERS, _SMALL, _LARGE = 24, 24, 11, 13
_INK, _OPEN, _CUT, _PAPER, _FILL = "#1b1b1b", "#2b6cb0", "#c53030", "#ffffff", "#eef3f8"


@dataclass(frozen=True, slots=True)
class Box:
    """An item; `x` and `y` are its middle."""

    x: float
    y: float
    qid: str
    label: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """A step from a class to what states it; a cut one is not taken by a walk."""

    start: Box
    end: Box
    label: str
    cut: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is drawn, in pixels."""

    width: int
    height: int
    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def draw_paths(explanation: Explanation, path: Path) -> None:
    """Write the shown paths of an explanation as SVG or PNG, by the suffix of the file."""
    writers = {".svg": svg_of, ".png": png_of}
    if path.suffix.lower() not in writers:
        raise UsageError("not a picture that is drawn", where=str(path), expected=" or ".join(writers))
    if not path.parent.is_dir():
        raise UsageError("there is no such folder", where=str(path.parent), hint="Make it first.")
    write_atomically(path, writers[path.suffix.lower()](drawing_of(explanation)))


def drawing_of(explanation: Explanation) -> Drawing:
    """Lay out the shown paths; an item stands as many steps from the left as its longest path."""
    if not explanation.paths:
        raise UsageError(
            "no path to draw", where=explanation.qid,
            found=f"{explanation.open_paths} open and {explanation.cut_paths} cut", hint="--paths 0 shows none.",
        )  # fmt: skip
    steps: dict[str, PathStep] = {}
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    layers: dict[str, int] = {}
    for path in explanation.paths:
        for hop, step in enumerate(path.steps):
            steps.setdefault(step.qid, step)
            layers[step.qid] = max(hop, layers.get(step.qid, 0))
            if hop:
                graph.add_edge(path.steps[hop - 1].qid, step.qid, step=step)
    networkx.set_node_attributes(graph, layers, "layer")
    boxes = {}
    for qid, (x, y) in _places(graph).items():
        label = steps[qid].label or ""
        boxes[qid] = Box(x, y, qid, label if len(label) <= _LETTERS else f"{label[: _LETTERS - 1]}…")
    arrows = [
        Arrow(boxes[a], boxes[b], ", ".join(dict.fromkeys(each.property for each in step.said)), step.cut is not None)
        for a, b, step in graph.edges(data="step")
    ]
    width = max(box.x for box in boxes.values()) + WIDTH / 2 + _MARGIN
    height = max(box.y for box in boxes.values()) + HEIGHT / 2 + _MARGIN
    title = explanation.headline(explanation.qid)
    return Drawing(round(width), round(height), title, tuple(boxes.values()), tuple(arrows))


def _places(graph: "networkx.DiGraph[str]") -> dict[str, tuple[float, float]]:
    """Ask networkx for the layers, and make its steps as wide and high as boxes need."""
    laid = networkx.multipartite_layout(graph, subset_key="layer")
    left, top = (min(point[axis] for point in laid.values()) for axis in (0, 1))
    columns = sorted({round(float(point[0]), 9) for point in laid.values()})
    step = (columns[-1] - columns[0]) / (len(columns) - 1)
    return {
        qid: (
            _MARGIN + WIDTH / 2 + (float(x) - float(left)) / step * _ACROSS,
            2 * _MARGIN + HEIGHT / 2 + (float(y) - float(top)) / step * _DOWN,
        )
        for qid, (x, y) in laid.items()
    }


def _lines_of(drawing: Drawing) -> Iterator[tuple[Arrow, tuple[float, ...], list[tuple[float, float]], str]]:
    """Give each arrow its line, from side to side of its boxes, the corners of its head, and its colour."""
    for arrow in drawing.arrows:
        x, y = arrow.end.x - WIDTH / 2, arrow.end.y
        tip = [(x, y), (x - 8, y - 4), (x - 8, y + 4)]
        yield arrow, (arrow.start.x + WIDTH / 2, arrow.start.y, x, y), tip, _CUT if arrow.cut else _OPEN


def svg_of(drawing: Drawing) -> bytes:
    """Write a picture as SVG."""
    size = f'width="{drawing.width}" height="{drawing.height}" viewBox="0 0 {drawing.width} {drawing.height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" role="img">',
        f"<title>{_escaped(drawing.title)}</title>",
        f'<rect width="100%" height="100%" fill="{_PAPER}"/>',
        _svg_text(_MARGIN, _MARGIN, drawing.title, _LARGE, _INK, "start"),
    ]
    for arrow, (x1, y1, x2, y2), tip, colour in _lines_of(drawing):
        dashes = ' stroke-dasharray="6 4"' if arrow.cut else ""
        line = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in tip)
        lines += [
            f'<line {line} stroke="{colour}" stroke-width="1.5"{dashes}/>',
            f'<polygon points="{points}" fill="{colour}"/>',
            _svg_text((x1 + x2) / 2, (y1 + y2) / 2 - 4, arrow.label, _SMALL, colour),
        ]
    for box in drawing.boxes:
        corner = f'x="{box.x - WIDTH / 2:.1f}" y="{box.y - HEIGHT / 2:.1f}" width="{WIDTH}" height="{HEIGHT}"'
        lines += [
            f'<rect {corner} rx="6" fill="{_FILL}" stroke="{_INK}"/>',
            _svg_text(box.x, box.y - 4, box.qid, _LARGE, _INK),
            _svg_text(box.x, box.y + 13, box.label, _SMALL, _INK),
        ]
    return "\n".join([*lines, "</svg>\n"]).encode("utf-8", "replace")


def _svg_text(x: float, y: float, text: str, size: int, colour: str, anchor: str = "middle") -> str:
    """Write a text, around its middle unless it starts there."""
    attributes = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {attributes}>{_escaped(text)}</text>"


def _escaped(text: str) -> str:
    """Escape a text, without what XML cannot hold."""
    return escape("".join(letter if letter.isprintable() else "\ufffd" for letter in text))


def png_of(drawing: Drawing) -> bytes:
    """Write a picture as PNG; letters that Pillow's own font lacks show as boxes, and stand in the SVG."""
    image = Image.new("RGB", (drawing.width, drawing.height), _PAPER)
    pen = ImageDraw.Draw(image)
    small, large = ImageFont.load_default(_SMALL), ImageFont.load_default(_LARGE)
    pen.text((_MARGIN, _MARGIN), drawing.title, fill=_INK, font=large, anchor="ls")
    for arrow, (x1, y1, x2, y2), tip, colour in _lines_of(drawing):
        pen.line((x1, y1, x2, y2), fill=colour, width=2)
        pen.polygon(tip, fill=colour)
        pen.text(((x1 + x2) / 2, (y1 + y2) / 2 - 4), arrow.label, fill=colour, font=small, anchor="ms")
    for box in drawing.boxes:
        corners = (box.x - WIDTH / 2, box.y - HEIGHT / 2, box.x + WIDTH / 2, box.y + HEIGHT / 2)
        pen.rounded_rectangle(corners, radius=6, fill=_FILL, outline=_INK)
        pen.text((box.x, box.y - 4), box.qid, fill=_INK, font=large, anchor="ms")
        pen.text((box.x, box.y + 13), box.label, fill=_INK, font=small, anchor="ms")
    content = io.BytesIO()
    image.save(content, format="PNG")
    return content.getvalue()
