"""One instrument's scores of all models as a chart: a dot and its interval each, on a scale of their own."""

import math
from collections.abc import Iterator, Mapping
from html import escape

from culturekit.report.figures import Figure
from culturekit.report.inert import inert

__all__ = ["instrument_chart"]

WIDTH, LEFT, RIGHT, TOP, ROW, FOOT = 680, 180, 24, 8, 28, 34
LETTERS = 22
"""Letters of a name that have room beside the axis; the table has the whole name."""
TICKS = 4


def instrument_chart(models: Mapping[str, Figure | None], *, title: str, number: int, whole: bool) -> str:
    """Draw the score of each model, on the `whole` scale from 0 to 1 or to what is drawn; `number` names the chart."""
    height = TOP + ROW * len(models) + FOOT
    top = 1.0 if whole else top_of([figure for figure in models.values() if figure is not None])
    name = f"instrument-{number}"
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{name}">',
        f'<title id="{name}">{shown(title)} of each model; the table above has the numbers</title>',
        *scale(height, top, title),
    ]
    for place, (model, figure) in enumerate(models.items()):
        parts += model_row(model, figure, TOP + ROW * place + ROW / 2, top)
    return "\n".join([*parts, "</svg>"])


def top_of(figures: list[Figure]) -> float:
    """Give the end of the scale: 1, or a round number above everything that is drawn."""
    highest = max((figure.high if figure.high is not None else figure.value for figure in figures), default=1.0)
    if not math.isfinite(highest) or 0.4 < highest <= 1.0 or highest <= 0:
        return 1.0
    step = 10.0 ** math.floor(math.log10(highest))
    return next(step * factor for factor in (1, 2, 4, 5, 8, 10, 20) if step * factor >= highest)


def scale(height: int, top: float, title: str) -> Iterator[str]:
    """Draw the axis from 0."""
    bottom = height - FOOT
    for tick in range(TICKS + 1):
        at = x(top * tick / TICKS, top)
        yield f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{bottom}"/>'
        yield f'<text class="tick" x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{top * tick / TICKS:g}</text>'
    yield f'<text class="tick" x="{x(top / 2, top):.1f}" y="{height - 4}" text-anchor="middle">{shown(title)}</text>'


def model_row(model: str, figure: Figure | None, y: float, top: float) -> Iterator[str]:
    """Draw one model."""
    yield f'<text class="name" x="{LEFT - 12}" y="{y + 5:.1f}" text-anchor="end">{shown(model)}</text>'
    if figure is None or not math.isfinite(figure.value):
        yield f'<text class="tick" x="{LEFT + 4}" y="{y + 5:.1f}">no score</text>'
        return
    if figure.low is not None and figure.high is not None:
        low, high = x(figure.low, top), x(figure.high, top)
        yield f'<line class="mapped" x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
    yield f'<circle class="mapped" cx="{x(figure.value, top):.1f}" cy="{y:.1f}" r="4.5"/>'


def shown(text: str) -> str:
    """Write a text of strangers: inert, escaped, and no longer than there is room for."""
    name = inert(text)
    return escape(name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…")


def x(value: float, top: float) -> float:
    """Place a value on the axis; what lies outside stands at its end."""
    return LEFT + (WIDTH - LEFT - RIGHT) * min(max(value / top, 0.0), 1.0)
