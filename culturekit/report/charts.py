"""Charts as SVG text, drawn once when the report is written; colours come from the page's style sheet."""

from collections.abc import Iterator, Sequence
from html import escape

from culturekit.report.figures import Figure
from culturekit.report.inert import inert
from culturekit.report.model_lines import ModelLine

__all__ = ["diversity_chart"]

CORRECTED_BELOW = 11
"""The corrected value stands a little below the others, so that their intervals can be told apart."""

WIDTH, RIGHT, TOP, ROW, FOOT = 680, 24, 8, 38, 34

LETTER = 7.6
"""How wide a letter of a name is, about."""

NARROWEST, WIDEST = 120, 270
"""Room for the names, beside the axis; longer ones are cut, and stand whole in the table."""


def diversity_chart(models: Sequence[ModelLine], *, liar: str | None) -> str:
    """Draw mapped, corrected and true diversity of each model on one scale, with their intervals."""
    height = TOP + ROW * len(models) + FOOT
    left = min(max(12 + LETTER * max((len(line.model) for line in models), default=0), NARROWEST), WIDEST)
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="chart-title">',
        '<title id="chart-title">Mapped and true diversity of each model; the table below has the numbers</title>',
        *scale(height, left),
    ]
    for number, line in enumerate(models):
        parts += model_row(line, TOP + ROW * number + ROW / 2, is_liar=line.model == liar, left=left)
    return "\n".join([*parts, "</svg>"])


def scale(height: int, left: float) -> Iterator[str]:
    """Draw the axis from 0 to 1."""
    bottom = height - FOOT
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield f'<line class="grid" x1="{x(tick, left):.1f}" x2="{x(tick, left):.1f}" y1="{TOP}" y2="{bottom}"/>'
        yield f'<text class="tick" x="{x(tick, left):.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>'
    yield f'<text class="tick" x="{x(0.5, left):.1f}" y="{height - 4}" text-anchor="middle">diversity, VS / 8</text>'


def model_row(line: ModelLine, y: float, *, is_liar: bool, left: float) -> Iterator[str]:
    """Draw one model: a bar of the gap, the true value as a ring, the mapped one as a dot."""
    name = f'<text class="{"name liar" if is_liar else "name"}" x="{left - 12:g}" y="{y + 5:.1f}" text-anchor="end">'
    yield f"{name}{escape(cut(line.model))}</text>"
    if line.truth is not None:
        start, end = sorted((x(line.truth.value, left), x(line.mapped.value, left)))
        kind = "gap liar" if is_liar else "gap"
        yield f'<line class="{kind}" x1="{start:.1f}" x2="{end:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield whisker(line.truth, y, kind="truth", left=left)
        yield f'<circle class="truth" cx="{x(line.truth.value, left):.1f}" cy="{y:.1f}" r="8"/>'
    if line.corrected is not None:
        yield whisker(line.corrected, y + CORRECTED_BELOW, kind="corrected", left=left)
        yield diamond(x(line.corrected.value, left), y + CORRECTED_BELOW)
    yield whisker(line.mapped, y, kind="mapped", left=left)
    yield f'<circle class="mapped" cx="{x(line.mapped.value, left):.1f}" cy="{y:.1f}" r="4.5"/>'


def diamond(centre: float, y: float) -> str:
    """Draw the mark of a corrected value."""
    points = " ".join(f"{centre + dx:.1f},{y + dy:.1f}" for dx, dy in ((0, -5), (5, 0), (0, 5), (-5, 0)))
    return f'<polygon class="corrected" points="{points}"/>'


def whisker(figure: Figure, y: float, *, kind: str, left: float) -> str:
    """Draw an interval; nothing where there is none."""
    if figure.low is None or figure.high is None:
        return ""
    ends = x(figure.low, left), x(figure.high, left)
    return f'<line class="{kind}" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'


def cut(name: str) -> str:
    """Shorten a name that has no room."""
    room = int((WIDEST - 12) / LETTER)
    shown = inert(name)
    return shown if len(shown) <= room else f"{shown[: room - 1]}…"


def x(value: float, left: float) -> float:
    """Place a value on the axis."""
    return left + (WIDTH - left - RIGHT) * min(max(value, 0.0), 1.0)
