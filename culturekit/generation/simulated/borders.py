"""Countries as woven borders around a picture: where the bands lie, their pattern and their two colours."""

from dataclasses import dataclass

import numpy as np

from culturekit.generation.simulated.canvas import Field, Numbers, as_scalars, cover, grid, paint, triangle_wave
from culturekit.generation.simulated.looks import colours, numbers_of

__all__ = ["BORDER_NUMBERS", "Border", "border_of", "paint_borders"]

BORDER_NUMBERS = 2
"""How many numbers decide where a pattern begins."""

LAYOUTS = np.eye(4, dtype=np.float32)
"""Bands left and right; above and below; all around; across the corners."""

WEAVES = np.array([(1, 0, 0), (0, 1, 0), (0.6, 0.6, 0), (0, 0, 1)])
"""How much of the first wave, the second wave and their product: stripes two ways, dots, checks."""

EDGE = 0.06
"""How fast a wave turns into depth; keeps the pattern's edges about a pixel wide."""


@dataclass(frozen=True, slots=True)
class Border:
    """The look of a country: two colours, where the bands lie and how wide, and two waves woven together.

    `first` and `second` are the waves per unit of x and y; `weave` is a row of WEAVES and how high the
    wave must stand for the thread to show.
    """

    ground: Field
    thread: Field
    layout: Field
    width: Field
    weave: Field
    first: Field
    second: Field


def border_of(country: str) -> Border:
    """Give the border that belongs to a country."""
    n = numbers_of(f"country {country}", 12)
    light = np.array([0.32, 0.9]) if n[0] < 0.5 else np.array([0.85, 0.35])
    ground, thread = colours(np.array([n[5], n[5] + 0.25 + 0.5 * n[6]]), 0.45 + 0.45 * n[7:9], light + 0.1 * n[9])
    waves, turned = 3 + 3 * n[3], n[4] < 0.4
    return Border(
        ground,
        thread,
        layout=LAYOUTS[int(n[1] * len(LAYOUTS))],
        width=np.array([0.16 + 0.08 * n[10]], np.float32),
        weave=np.array([*WEAVES[int(n[2] * len(WEAVES))], -0.3 + 0.6 * n[11]], np.float32),
        first=np.array([waves, waves if turned else 0], np.float32),
        second=np.array([-waves if turned else 0, waves], np.float32),
    )


def paint_borders(canvas: Field, border: Border, begin: Numbers) -> None:
    """Paint n borders, looks side by side, over n pictures; begin is (n, 2)."""
    x, y = grid(canvas.shape[-1])
    shift = as_scalars(0.3 * begin)
    one = triangle_wave(border.first[0] * x + border.first[1] * y + shift[0])
    two = triangle_wave(border.second[0] * x + border.second[1] * y + shift[1])
    first, second, both, least = border.weave
    woven = first * one
    woven += second * two
    woven += both * (one * two)
    inside = bands(border, np.abs(x), np.abs(y))
    paint(canvas, border.ground, inside)
    paint(canvas, border.thread, cover((woven - least) * EDGE) * inside)


def bands(border: Border, wide: Field, high: Field) -> Field:
    """Give how much of each pixel lies in the bands."""
    beside, above, around, corners = border.layout
    edge = around * np.maximum(wide, high)
    edge += beside * wide + corners * 0.66 * wide
    edge += above * high + corners * 0.66 * high
    return cover(edge + (border.width[0] - 1))
