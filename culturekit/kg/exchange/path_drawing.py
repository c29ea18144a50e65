"""Draw the paths of an explanation: networkx lays them out, from the roots on the left to the item."""

import io
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple, TypeAlias

import networkx
from PIL import Image, ImageDraw, ImageFont

from culturekit.core.atomic import write_atomically
from culturekit.core.errors import UsageError
from culturekit.kg.inspection.explain import Explanation

WIDTH, HEIGHT = 170, 44  # of a box, in pixels
_ACROSS, _DOWN = 270, 64  # from one box to the next
_MARGIN, _LETTERS = 24, 24
_SIZES = {"title": 13, "large": 13, "small": 11}  # of letters
_INK, _OPEN, _CUT, _PAPER, _FILL = "#1b1b1b", "#2b6cb0", "#c53030", "#ffffff", "#eef3f8"
# What is drawn: its kind, its corners or where its text stands, its colour, and its text.
_Shape: TypeAlias = tuple[str, tuple[float, ...], str, str]


class Drawing(NamedTuple):
    """Boxes and arrows on a page of some pixels."""

    width: int
    height: int
    title: str
    boxes: dict[str, tuple[float, float, str]]  # the middle of each item, and its label
    arrows: list[tuple[str, str, str, bool]]  # from a class to what states it, by which properties, and whether cut


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
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    for path in explanation.paths:
        for hop, step in enumerate(path.steps):
            known = graph.nodes.get(step.qid, {"layer": 0, "label": step.label or ""})
            graph.add_node(step.qid, layer=max(hop, known["layer"]), label=known["label"])
            if hop:
                graph.add_edge(path.steps[hop - 1].qid, step.qid, step=step)
    laid = networkx.multipartite_layout(graph, subset_key="layer")
    left, top = (min(float(point[axis]) for point in laid.values()) for axis in (0, 1))
    columns = sorted({round(float(point[0]), 9) for point in laid.values()})
    unit = (columns[-1] - columns[0]) / (len(columns) - 1)
    boxes = {}
    for qid, (across, down) in laid.items():
        label = graph.nodes[qid]["label"]
        x = _MARGIN + WIDTH / 2 + (float(across) - left) / unit * _ACROSS
        y = 2 * _MARGIN + HEIGHT / 2 + (float(down) - top) / unit * _DOWN
        boxes[qid] = (x, y, label if len(label) <= _LETTERS else f"{label[: _LETTERS - 1]}…")
    arrows = [
        (a, b, ", ".join(dict.fromkeys(each.property for each in step.said)), step.cut is not None)
        for a, b, step in graph.edges(data="step")
    ]
    width = round(max(x for x, _, _ in boxes.values()) + WIDTH / 2 + _MARGIN)
    height = round(max(y for _, y, _ in boxes.values()) + HEIGHT / 2 + _MARGIN)
    return Drawing(width, height, explanation.headline(explanation.qid), boxes, arrows)


def _shapes(drawing: Drawing) -> Iterator[_Shape]:
    """List what is drawn, from back to front."""
    yield "title", (_MARGIN, _MARGIN), _INK, drawing.title
    for start, end, label, cut in drawing.arrows:
        x1, y1, x2, y2 = drawing.boxes[start][0] + WIDTH / 2, drawing.boxes[start][1], *drawing.boxes[end][:2]
        x2 -= WIDTH / 2
        colour = _CUT if cut else _OPEN
        yield "cut" if cut else "line", (x1, y1, x2, y2), colour, ""
        yield "head", (x2, y2, x2 - 8, y2 - 4, x2 - 8, y2 + 4), colour, ""
        yield "small", ((x1 + x2) / 2, (y1 + y2) / 2 - 4), colour, label
    for qid, (x, y, label) in drawing.boxes.items():
        yield "box", (x - WIDTH / 2, y - HEIGHT / 2, x + WIDTH / 2, y + HEIGHT / 2), _INK, ""
        yield "large", (x, y - 4), _INK, qid
        yield "small", (x, y + 13), _INK, label


def svg_of(drawing: Drawing) -> bytes:
    """Write a picture as SVG."""
    size = f'width="{drawing.width}" height="{drawing.height}" viewBox="0 0 {drawing.width} {drawing.height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" role="img">',
        f"<title>{_escaped(drawing.title)}</title>",
        f'<rect width="100%" height="100%" fill="{_PAPER}"/>',
    ]
    for kind, corners, colour, text in _shapes(drawing):
        at = [f"{each:.1f}" for each in corners]
        if kind in {"line", "cut"}:
            stroke = f'stroke="{colour}" stroke-width="1.5"' + ' stroke-dasharray="6 4"' * (kind == "cut")
            lines.append(f'<line x1="{at[0]}" y1="{at[1]}" x2="{at[2]}" y2="{at[3]}" {stroke}/>')
        elif kind == "head":
            lines.append(
                f'<polygon points="{" ".join(map(",".join, zip(at[::2], at[1::2], strict=True)))}" fill="{colour}"/>'
            )
        elif kind == "box":
            box = f'x="{at[0]}" y="{at[1]}" width="{WIDTH}" height="{HEIGHT}" rx="6"'
            lines.append(f'<rect {box} fill="{_FILL}" stroke="{colour}"/>')
        else:
            where = f'x="{at[0]}" y="{at[1]}" font-size="{_SIZES[kind]}"'
            anchor = "start" if kind == "title" else "middle"
            lines.append(f'<text {where} text-anchor="{anchor}" fill="{colour}">{_escaped(text)}</text>')
    return "\n".join([*lines, "</svg>\n"]).encode("utf-8", "replace")


def _escaped(text: str) -> str:
    """Escape a text, without what XML cannot hold."""
    return escape("".join(letter if letter.isprintable() else "\ufffd" for letter in text))


def png_of(drawing: Drawing) -> bytes:
    """Write a picture as PNG; letters that Pillow's own font lacks show as boxes, and stand in the SVG."""
    image = Image.new("RGB", (drawing.width, drawing.height), _PAPER)
    pen = ImageDraw.Draw(image)
    for kind, corners, colour, text in _shapes(drawing):
        if kind in {"line", "cut"}:
            pen.line(corners, fill=colour, width=2)
        elif kind == "head":
            pen.polygon(corners, fill=colour)
        elif kind == "box":
            pen.rounded_rectangle(corners, radius=6, fill=_FILL, outline=colour)
        else:
            font = ImageFont.load_default(_SIZES[kind])
            pen.text((corners[0], corners[1]), text, fill=colour, font=font, anchor="ls" if kind == "title" else "ms")
    content = io.BytesIO()
    image.save(content, format="PNG")
    return content.getvalue()
