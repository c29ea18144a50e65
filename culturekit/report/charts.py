"""Charts as SVG text, drawn once when the report is written; colours come from the page's style sheet."""

from collections.abc import Iterator, Sequence
from html import escape

from culturekit.report.figures import Figure
from culturekit.report.model_lines import ModelLine

__all__ = ["diversity_chart"]

CORRECTED_BELOW = 11
"""The corrected value stands a little below the others, so that their intervals can be told apart."""

WIDTH, LEFT, RIGHT, TOP, ROW, FOOT = 680, 120, 24, 8, 38, 34


def diversity_chart(models: Sequence[ModelLine], *, liar: str | None) -> str:
    """Draw mapped, corrected and true diversity of each model on one scale, with their intervals."""
    height = TOP + ROW * len(models) + FOOT
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="chart-title">',
        '<title id="chart-title">Mapped and true diversity of each model; the table below has the numbers</title>',
        *scale(height),
    ]
    for number, line in enumerate(models):
        parts += model_row(line, TOP + ROW * number + ROW / 2, is_liar=line.model == liar)
    return "\n".join([*parts, "</svg>"])


def scale(height: int) -> Iterator[str]:
    """Draw the axis from 0 to 1."""
    bottom = height - FOOT
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{bottom}"/>'
        yield f'<text class="tick" x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>'
    yield f'<text class="tick" x="{x(0.5):.1f}" y="{height - 4}" text-anchor="middle">diversity, VS / 8</text>'


def model_row(line: ModelLine, y: float, *, is_liar: bool) -> Iterator[str]:
    """Draw one model: a bar of the gap, the true value as a ring, the mapped one as a dot."""
    name = f'<text class="{"name liar" if is_liar else "name"}" x="{LEFT - 12}" y="{y + 5:.1f}" text-anchor="end">'
    yield f"{name}{escape(line.model)}</text>"
    if line.truth is not None:
        start, end = sorted((x(line.truth.value), x(line.mapped.value)))
        kind = "gap liar" if is_liar else "gap"
        yield f'<line class="{kind}" x1="{start:.1f}" x2="{end:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield whisker(line.truth, y, kind="truth")
        yield f'<circle class="truth" cx="{x(line.truth.value):.1f}" cy="{y:.1f}" r="8"/>'
    if line.corrected is not None:
        yield whisker(line.corrected, y + CORRECTED_BELOW, kind="corrected")
        yield diamond(x(line.corrected.value), y + CORRECTED_BELOW)
    yield whisker(line.mapped, y, kind="mapped")
    yield f'<circle class="mapped" cx="{x(line.mapped.value):.1f}" cy="{y:.1f}" r="4.5"/>'


def diamond(centre: float, y: float) -> str:
    """Draw the mark of a corrected value."""
    points = " ".join(f"{centre + dx:.1f},{y + dy:.1f}" for dx, dy in ((0, -5), (5, 0), (0, 5), (-5, 0)))
    return f'<polygon class="corrected" points="{points}"/>'


def whisker(figure: Figure, y: float, *, kind: str) -> str:
    """Draw an interval; nothing where there is none."""
    if figure.low is None or figure.high is None:
        return ""
    return f'<line class="{kind}" x1="{x(figure.low):.1f}" x2="{x(figure.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'


def x(value: float) -> float:
    """Place a value on the axis."""
    return LEFT + (WIDTH - LEFT - RIGHT) * min(max(value, 0.0), 1.0)
