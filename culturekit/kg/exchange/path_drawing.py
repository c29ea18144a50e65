"""The paths of an explanation as a picture: networkx lays them out, from the roots on the left to the item."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import networkx
from PIL import Image, ImageDraw, ImageFont

from culturekit.errors import UsageError
from culturekit.kg.looking.explanation import Explanation, PathStep
from culturekit.storage.atomic import write_atomically

__all__ = ["Drawing", "draw_paths", "drawing_of", "png_of", "svg_of"]

WIDTH, HEIGHT = 170, 44
"""Size of a box in pixels."""

ACROSS, DOWN = 270, 64
"""From one box to the next."""

MARGIN, LETTERS, SMALL, LARGE = 24, 24, 11, 13
INK, OPEN, CUT, PAPER, FILL = "#1b1b1b", "#2b6cb0", "#c53030", "#ffffff", "#eef3f8"


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
    for told in explanation.paths:
        for place, step in enumerate(told.steps):
            steps.setdefault(step.qid, step)
            layers[step.qid] = max(place, layers.get(step.qid, 0))
            if place:
                graph.add_edge(told.steps[place - 1].qid, step.qid, step=step)
    networkx.set_node_attributes(graph, layers, "layer")
    boxes = {qid: Box(*place, qid, shortened(steps[qid].label or "")) for qid, place in places(graph).items()}
    arrows = [
        Arrow(boxes[a], boxes[b], stated_by(step), step.cut is not None) for a, b, step in graph.edges(data="step")
    ]
    width = max(box.x for box in boxes.values()) + WIDTH / 2 + MARGIN
    height = max(box.y for box in boxes.values()) + HEIGHT / 2 + MARGIN
    title = f"{explanation.qid} is {'' if explanation.verdict == 'in' else 'not '}an artifact of {explanation.concept}"
    return Drawing(round(width), round(height), title, tuple(boxes.values()), tuple(arrows))


def places(graph: "networkx.DiGraph[str]") -> dict[str, tuple[float, float]]:
    """Ask networkx for the layers, and make its steps as wide and high as boxes need."""
    laid = networkx.multipartite_layout(graph, subset_key="layer")
    left, top = (min(point[axis] for point in laid.values()) for axis in (0, 1))
    columns = sorted({round(float(point[0]), 9) for point in laid.values()})
    step = (columns[-1] - columns[0]) / (len(columns) - 1)
    return {
        qid: (
            MARGIN + WIDTH / 2 + (float(x) - float(left)) / step * ACROSS,
            2 * MARGIN + HEIGHT / 2 + (float(y) - float(top)) / step * DOWN,
        )
        for qid, (x, y) in laid.items()
    }


def stated_by(step: PathStep) -> str:
    """Say by which properties a step is stated."""
    return ", ".join(dict.fromkeys(said.property for said in step.said))


def shortened(text: str) -> str:
    """Cut a label that has no room."""
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"


def svg_of(drawing: Drawing) -> bytes:
    """Write a picture as SVG."""
    return ("\n".join(svg_lines(drawing)) + "\n").encode("utf-8", "replace")


def svg_lines(drawing: Drawing) -> Iterator[str]:
    """Write the elements of a picture."""
    size = f'width="{drawing.width}" height="{drawing.height}" viewBox="0 0 {drawing.width} {drawing.height}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" role="img">'
    yield f"<title>{written(drawing.title)}</title>"
    yield f'<rect width="100%" height="100%" fill="{PAPER}"/>'
    yield f'<text x="{MARGIN}" y="{MARGIN}" font-size="{LARGE}" fill="{INK}">{written(drawing.title)}</text>'
    for arrow in drawing.arrows:
        (x1, y1), (x2, y2) = ends(arrow)
        colour, dashes = (CUT, ' stroke-dasharray="6 4"') if arrow.cut else (OPEN, "")
        line = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        yield f'<line {line} stroke="{colour}" stroke-width="1.5"{dashes}/>'
        yield f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in tip(arrow))}" fill="{colour}"/>'
        yield svg_text((x1 + x2) / 2, (y1 + y2) / 2 - 4, arrow.label, SMALL, colour)
    for box in drawing.boxes:
        corner = f'x="{box.x - WIDTH / 2:.1f}" y="{box.y - HEIGHT / 2:.1f}" width="{WIDTH}" height="{HEIGHT}"'
        yield f'<rect {corner} rx="6" fill="{FILL}" stroke="{INK}"/>'
        yield svg_text(box.x, box.y - 4, box.qid, LARGE, INK)
        yield svg_text(box.x, box.y + 13, box.label, SMALL, INK)
    yield "</svg>"


def svg_text(x: float, y: float, text: str, size: int, colour: str) -> str:
    """Write a text around its middle."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="middle" fill="{colour}">{written(text)}</text>'
    )


def written(text: str) -> str:
    """Escape a text, without what XML cannot hold."""
    return escape("".join(letter if letter.isprintable() else "\ufffd" for letter in text))


def ends(arrow: Arrow) -> tuple[tuple[float, float], tuple[float, float]]:
    """Give where an arrow begins and ends: at the sides of its boxes."""
    return (arrow.start.x + WIDTH / 2, arrow.start.y), (arrow.end.x - WIDTH / 2, arrow.end.y)


def tip(arrow: Arrow) -> Sequence[tuple[float, float]]:
    """Give the corners of an arrow's tip."""
    _, (x, y) = ends(arrow)
    return (x, y), (x - 8, y - 4), (x - 8, y + 4)


def png_of(drawing: Drawing) -> bytes:
    """Write a picture as PNG; letters that Pillow's own font lacks show as boxes, and stand in the SVG."""
    image = Image.new("RGB", (drawing.width, drawing.height), PAPER)
    pen = ImageDraw.Draw(image)
    small, large = ImageFont.load_default(SMALL), ImageFont.load_default(LARGE)
    pen.text((MARGIN, MARGIN), drawing.title, fill=INK, font=large, anchor="ls")
    for arrow in drawing.arrows:
        start, end = ends(arrow)
        colour = CUT if arrow.cut else OPEN
        pen.line([start, end], fill=colour, width=2)
        pen.polygon(tip(arrow), fill=colour)
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 - 4)
        pen.text(middle, arrow.label, fill=colour, font=small, anchor="ms")
    for box in drawing.boxes:
        corners = (box.x - WIDTH / 2, box.y - HEIGHT / 2, box.x + WIDTH / 2, box.y + HEIGHT / 2)
        pen.rounded_rectangle(corners, radius=6, fill=FILL, outline=INK)
        pen.text((box.x, box.y - 4), box.qid, fill=INK, font=large, anchor="ms")
        pen.text((box.x, box.y + 13), box.label, fill=INK, font=small, anchor="ms")
    content = io.BytesIO()
    image.save(content, format="PNG")
    return content.getvalue()
