"""Tables drawn as SVG text: dot plots with intervals, curves with bands, histograms; the page's style has the colours.

A chart draws what a table says and never stands without it. Series differ in shape as well as in colour.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias

from culturekit.report.charts import drawing
from culturekit.report.run_folders import inert

Point: TypeAlias = tuple[float, float | None, float | None]  # A value and the limits of its interval, where it has one

Lines: TypeAlias = Sequence[tuple[str, Sequence[Point | None]]]
"""The rows of a table: the head of each, and its points, one a column."""

ChartKind: TypeAlias = Literal["dots", "curves", "bars", "heat"]

_WIDTH, _LEFT, _RIGHT, _TOP, _FOOT = 420, 10, 52, 8, 36
_LABEL, _STEP, _PANEL, _CURVES, _KEY, _LETTER = 22, 13, 58, 170, 17, 6.8
_SHAPES = 7  # beyond, shapes and colours begin again
_TICKS, _LONGEST = 5, 72


@dataclass(frozen=True, slots=True)
class Chart:
    """How a table is drawn."""

    # `dots` draws each row by itself, one mark a column; `curves` a line a row over the columns; `bars` a histogram a
    # row, with one bar a column; `heat` shades the table itself, from its least to its greatest
    kind: ChartKind
    axis: str = ""  # what the numbers are
    swatches: tuple[str, ...] = ()  # colours of the bins of a histogram, as hexadecimal sRGB


def plot(
    chart: Chart, name: str, title: str, columns: Sequence[str], lines: Lines, *, among: Iterable[Point] = (),
    links: Sequence[Sequence[str]] = (),
) -> str:  # fmt: skip
    """Draw rows of points.

    Args:
        chart: how.
        name: tells the chart from the others of its page.
        title: what is read out.
        columns: heads of the columns.
        lines: the rows.
        among: points that are on the scale, too.
        links: where the numbers of dots lead, row by row.
    """
    scale = _scale_of([*among, *(point for _, points in lines for point in points if point)], chart)
    series = {"dots": columns, "curves": [head for head, _ in lines]}.get(chart.kind, ())
    keys, below = _key_rows(series if len(series) > 1 else ())  # one alone needs no key
    if chart.kind == "bars":
        marks, height = [*_panels(scale, chart, columns, lines)], (_LABEL + _PANEL + 30.0) * len(lines) + _KEY
    elif chart.kind == "curves":
        marks, height = [*_curves(scale, chart, columns, lines, below)], below + _CURVES + _FOOT + _TOP
    else:
        height = below + sum(_LABEL + _STEP * _shown(points) for _, points in lines) + _FOOT + _TOP
        marks = [*_upright(scale, chart.axis, below, height), *_dots(scale, lines, below, links)]
    description = f"{_text(title, 200)}; the table below has the numbers"
    return drawing(name, description, (_WIDTH, round(height)), [*keys, *marks], kind=f"chart plot {chart.kind}")


@dataclass(frozen=True, slots=True)
class _Scale:
    """A scale from one end to the other, with marks at equal steps."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float, start: float, end: float) -> float:
        """Place a value between two ends of the drawing; what lies outside stands at its end."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return start + (end - start) * min(max(share, 0.0), 1.0)


def _scale_of(points: Iterable[Point], chart: Chart) -> _Scale:
    """Span what is drawn, from 0 where that is near or where bars grow; ticks are round numbers."""
    ends = [end for point in points for end in point if end is not None and math.isfinite(end)] or [0.0, 1.0]
    low, high = min(ends), max(ends)
    if low > 0 and (chart.kind == "bars" or low <= high - low):
        low = 0.0
    if low == high:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / _TICKS
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [step * number for number in range(first, last + 1)]
    if chart.kind == "dots":
        edge = (high - low) / 40
        low, high = min(low, 0.0) if low == 0 else low - edge, high + edge
        return _Scale(low, high, tuple(tick for tick in ticks if low <= tick <= high))
    return _Scale(ticks[0], ticks[-1], tuple(ticks))


def minus(text: str) -> str:
    """Write minus signs as such."""
    return text.replace("-", "\N{MINUS SIGN}")


def _name(text: str, x: float, y: float, room: float, kind: str = "name") -> str:
    """Write a name from here on, smaller where it would not fit."""
    small = " long" if len(inert(text)) * _LETTER > room else ""
    return _write(_text(text, _LONGEST), x, y, kind + small, "start")


def _text(text: str, room: int) -> str:
    """Write a text of strangers: inert, no longer than so many letters, and escaped."""
    shown = inert(text).replace("\n", " ")
    return escape(shown if len(shown) <= room else f"{shown[: room - 1]}…")


def _write(text: str, x: float, y: float, kind: str = "tick", anchor: str = "middle") -> str:
    """Write a text that is escaped already."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """Draw a line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _mark(series: int, x: float, y: float) -> str:
    """Draw the mark of a series: disc, diamond, ring, square, triangle, cross, pin."""
    kind, shape = f"k{series % _SHAPES}", series % _SHAPES
    if shape in {0, 2}:
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{4.2 if shape == 0 else 3.6}"/>'
    corners: tuple[tuple[float, float], ...] = {
        1: ((0, -5), (5, 0), (0, 5), (-5, 0)),
        3: ((-3.8, -3.8), (3.8, -3.8), (3.8, 3.8), (-3.8, 3.8)),
        4: ((0, -4.8), (4.8, 3.8), (-4.8, 3.8)),
        6: ((0, 5), (4.6, -4), (0, -1.6), (-4.6, -4)),
        5: ((-4, -1.3), (-1.3, -1.3), (-1.3, -4), (1.3, -4), (1.3, -1.3), (4, -1.3), (4, 1.3), (1.3, 1.3), (1.3, 4),
            (-1.3, 4), (-1.3, 1.3), (-4, 1.3)),
    }[shape]  # fmt: skip
    return f'<polygon class="{kind}" points="{" ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)}"/>'


def _key_rows(names: Sequence[str]) -> tuple[list[str], float]:
    """Draw the key, as many rows as it needs, and say where it ends."""
    marks, x, y = list[str](), float(_LEFT), 12.0
    for number, name in enumerate(names):
        width = min(26 + _LETTER * len(inert(name)), _WIDTH - _LEFT)
        if x > _LEFT and x + width > _WIDTH:
            x, y = float(_LEFT), y + _KEY
        marks += [_mark(number, x + 5, y - 4), _name(name, x + 14, y, _WIDTH - x - 18, "tick")]
        x += width
    return marks, y + 8 if names else 0.0


def _upright(scale: _Scale, axis: str, top: float, bottom: float) -> Iterator[str]:
    """Draw a scale that lies, with lines through all rows."""
    end = _WIDTH - _RIGHT
    for tick in scale.ticks:
        x = scale.at(tick, _LEFT, end)
        kind = "zero" if tick == 0 and scale.low < 0 else "grid"
        yield _line(kind, x, top + _TOP, x, bottom - _FOOT + 4)
        yield _write(minus(f"{tick:.3g}"), x, bottom - _FOOT + 17)
    yield _write(_text(axis, 60), (_LEFT + end) / 2, bottom - 4)


def _shown(points: Sequence[Point | None]) -> int:
    """Count what a row draws; one line at least."""
    return max(sum(point is not None and math.isfinite(point[0]) for point in points), 1)


def _dots(scale: _Scale, lines: Lines, top: float, links: Sequence[Sequence[str]]) -> Iterator[str]:
    """Draw a row for each head, with a mark, an interval and a number for each of its points."""
    y, end = top + _TOP, _WIDTH - _RIGHT
    values = [float(point[0]) for _, points in lines for point in points if point]
    counts = all(value.is_integer() for value in values) and max(values, default=0.0) > 1
    for index, (head, points) in enumerate(lines):
        yield _name(head, _LEFT, y + 10, _WIDTH - _LEFT)
        y += _LABEL
        for series, point in enumerate(points):
            if point is not None and math.isfinite(point[0]):
                value, low, high = point
                if low is not None and high is not None:
                    yield _line(f"k{series % _SHAPES}", scale.at(low, _LEFT, end), y, scale.at(high, _LEFT, end), y)
                yield _mark(series, scale.at(value, _LEFT, end), y)
                shown = minus(f"{value:.{0 if counts else 3}f}" if abs(value) < 10 else f"{value:.4g}")
                text = _write(shown, _WIDTH - 2, y + 4, anchor="end")
                to = links[index][series] if links else ""
                yield f'<a href="{escape(to)}">{text}</a>' if to else text
                y += _STEP
        if not any(point is not None and math.isfinite(point[0]) for point in points):
            yield _write("no score", _LEFT, y + 4, anchor="start")
            y += _STEP


def _curves(scale: _Scale, chart: Chart, columns: Sequence[str], lines: Lines, top: float) -> Iterator[str]:
    """Draw a line for each row over the columns, and the band of its intervals."""
    left, end, above, bottom = _LEFT + 34.0, _WIDTH - 14.0, top + 20.0, top + _CURVES
    places = [left + (end - left) * (number + 0.5) / max(len(columns), 1) for number in range(len(columns))]
    yield _write(_text(chart.axis, 60), _LEFT, top + 11, anchor="start")
    for tick in scale.ticks:
        y = scale.at(tick, bottom, above)
        yield from (_line("grid", left, y, end, y), _write(minus(f"{tick:.3g}"), left - 6, y + 4, anchor="end"))
    for across, column in zip(places, columns, strict=True):
        yield _write(_text(column, max(int((end - left) / len(columns) / 6), 3)), across, bottom + 17)
    for series, (_, points) in enumerate(lines):
        there = [(x, point) for x, point in zip(places, points, strict=True) if point and math.isfinite(point[0])]
        yield from _curve(scale, series, there, above, bottom)


def _curve(
    scale: _Scale, series: int, there: Sequence[tuple[float, Point]], above: float, bottom: float
) -> Iterator[str]:
    """Draw one line with its band and its marks."""
    kind, banded = f"k{series % _SHAPES}", [(x, low, high) for x, (_, low, high) in there if low is not None]
    if len(banded) > 1:
        edge = [(x, high) for x, _, high in banded] + [(x, low) for x, low, _ in reversed(banded)]
        corners = " ".join(f"{x:.1f},{scale.at(end or 0.0, bottom, above):.1f}" for x, end in edge)
        yield f'<polygon class="{kind} band" points="{corners}"/>'
    spots = [(x, scale.at(value, bottom, above)) for x, (value, _, _) in there]
    yield f'<polyline class="{kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in spots)}"/>'
    yield from (_mark(series, x, y) for x, y in spots)


def _panels(scale: _Scale, chart: Chart, columns: Sequence[str], lines: Lines) -> Iterator[str]:
    """Draw a histogram for each row, one below the other, on one scale."""
    left, end, room = _LEFT + 34.0, _WIDTH - 8.0, (_WIDTH - _LEFT - 42.0) / max(len(columns), 1)
    y = 0.0
    for head, points in lines:
        yield _name(head, _LEFT, y + 12, _WIDTH - _LEFT)
        top, bottom = y + _LABEL + 4, y + _LABEL + _PANEL
        for tick in (scale.low, scale.high):
            at = scale.at(tick, bottom, top)
            yield from (_line("grid", left, at, end, at), _write(minus(f"{tick:.3g}"), left - 6, at + 4, anchor="end"))
        for number, (column, point) in enumerate(zip(columns, points, strict=True)):
            x = left + room * number
            yield from _bar(scale, point, (x + room * 0.14, room * 0.72), top, bottom)
            if chart.swatches:
                fill = escape(chart.swatches[number % len(chart.swatches)])
                yield (f'<rect class="swatch" x="{x + 1:.1f}" y="{bottom + 2:.1f}" width="{room - 2:.1f}" height="8" '
                       f'fill="#{fill}"/>')  # fmt: skip
            yield _write(_text(column, max(int(room / 6), 3)), x + room / 2, bottom + (22 if chart.swatches else 14))
        y += _LABEL + _PANEL + 30
    yield _write(_text(chart.axis, 60), (left + end) / 2, y + 10)


def _bar(scale: _Scale, point: Point | None, span: tuple[float, float], top: float, bottom: float) -> Iterator[str]:
    """Draw one bar with its interval."""
    if point is None or not math.isfinite(point[0]):
        return
    (value, low, high), (x, width) = point, span
    height = bottom - scale.at(value, bottom, top)
    yield f'<rect class="k0" x="{x:.1f}" y="{bottom - height:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    if low is not None and high is not None:
        middle = x + width / 2
        yield _line("limits", middle, scale.at(low, bottom, top), middle, scale.at(high, bottom, top))
