"""How metrics follow each other, drawn as a matrix of tints."""

from collections.abc import Mapping, Sequence

from culturekit.report.charts import drawing, fitting

__all__ = ["matrix_picture"]

SIDE, LEFT, TOP, FOOT, MOST = 54, 220, 10, 150, 28


def matrix_picture(names: Sequence[str], found: Mapping[tuple[str, str], float]) -> str:
    """Draw correlations: filled where they rise together, ringed where one falls as the other rises."""
    size = SIDE * len(names)
    marks: list[str] = []
    for row, a in enumerate(names):
        middle = TOP + SIDE * row + SIDE / 2
        marks.append(f'<text x="{LEFT - 10}" y="{middle + 5:.0f}" text-anchor="end">{fitting(a, MOST)}</text>')
        x, y = LEFT + SIDE * row + SIDE / 2, TOP + size + 14
        marks.append(
            f'<text x="{x:.0f}" y="{y}" text-anchor="end" transform="rotate(-40 {x:.0f} {y})">{fitting(a, MOST)}</text>'
        )
        for column, b in enumerate(names):
            marks += cell(LEFT + SIDE * column, TOP + SIDE * row, 1.0 if a == b else found.get((a, b)))
    title = "How the metrics follow each other; the table below has the numbers"
    return drawing("matrix-title", title, (LEFT + size + 10, TOP + size + FOOT), marks, kind="chart matrix")


def cell(x: float, y: float, value: float | None) -> list[str]:
    """Draw one correlation: a circle as large as it is strong, and its number."""
    frame = f'<rect class="frame" x="{x}" y="{y}" width="{SIDE}" height="{SIDE}"/>'
    if value is None or value != value:
        return [frame]
    radius = (SIDE / 2 - 3) * min(abs(value), 1.0)
    kind = "mapped" if value >= 0 else "open"
    text = f"{value:.2f}".replace("-", "\N{MINUS SIGN}")
    return [
        frame,
        f'<circle class="{kind} tinted" cx="{x + SIDE / 2}" cy="{y + SIDE / 2}" r="{radius:.1f}"/>',
        f'<text x="{x + SIDE / 2}" y="{y + SIDE / 2 + 5}" text-anchor="middle">{text}</text>',
    ]
