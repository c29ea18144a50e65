"""The sheet that pictures are drawn on, many at a time: coordinates, soft-edged painting, light.

Everything here, and everything drawn with it, is made of +, -, *, / and square roots, which IEEE 754
rounds alike on every machine; and each picture is computed by itself. So a seed gives the same
pixels everywhere, whatever is drawn beside it.
"""

from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.generation.backend import Pixels

__all__ = [
    "Field", "Numbers", "as_scalars", "cover", "grid", "light", "paint", "polynomial", "sheet", "to_pixels",
    "triangle_wave",
]  # fmt: skip

Field: TypeAlias = NDArray[np.float32]
"""float32; (n, size, size) for a value per pixel of n pictures, (n, 1, 1) for a value per picture,
(3, n, size, size) for a canvas, (3, n, 1, 1) for a colour per picture."""

Numbers: TypeAlias = NDArray[np.float64]
"""float64 in [0, 1), from a seed or a name: what decides a drawing."""


@lru_cache(maxsize=8)
def grid(size: int) -> tuple[Field, Field]:
    """Give x (1, size) and y (size, 1) of the pixel centres, from -1 to 1, y downwards."""
    centres = ((np.arange(size) + 0.5) * (2 / size) - 1).astype(np.float32)
    centres.setflags(write=False)
    return centres[np.newaxis, :], centres[:, np.newaxis]


def as_scalars(values: Numbers | Field) -> Field:
    """Turn (n, k) values into k fields of one value per picture: (k, n, 1, 1)."""
    return np.ascontiguousarray(values.T, np.float32)[:, :, np.newaxis, np.newaxis]


def sheet(colour: Field, size: int) -> Field:
    """Begin a canvas of one colour per picture; channels are 0 to 1."""
    return np.broadcast_to(colour, (*colour.shape[:2], size, size)).copy()


def cover(depth: Field) -> Field:
    """Turn the depth inside a shape into how much of each pixel it covers; edges are one pixel wide."""
    covered: Field = depth * (depth.shape[-1] / 2)
    covered += 0.5
    np.maximum(covered, 0, out=covered)
    np.minimum(covered, 1, out=covered)
    return covered


def paint(canvas: Field, colour: Field, covered: Field) -> None:
    """Lay a colour over a canvas where `covered` is 1, and mix it in where it is less."""
    change = colour - canvas
    change *= covered
    canvas += change


def triangle_wave(phase: Field) -> Field:
    """Swing between -1 and 1, once per unit of phase; 1 at whole numbers."""
    distance = np.rint(phase)
    distance -= phase
    np.abs(distance, out=distance)
    distance *= -4
    distance += 1
    return distance


def polynomial(coefficients: Field, at: Field) -> Field:
    """Evaluate a polynomial per picture; coefficients (k, n, 1, 1), lowest power first."""
    value: Field = coefficients[-1] * at
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= at
    value += coefficients[0]
    return value


def light(canvas: Field, numbers: Numbers, *, strength: float) -> None:
    """Shade each picture smoothly, as an uneven lamp would; numbers is (n, 6)."""
    x, y = grid(canvas.shape[-1])
    flat, right, down, twist, bow, sag = as_scalars((numbers - 0.5) * (2 * strength))
    shade = y * (down + twist * x + sag * y)
    shade += 1 + flat + x * (right + bow * x)
    canvas *= shade


def to_pixels(canvas: Field) -> list[Pixels]:
    """Round a canvas to 8-bit RGB pictures."""
    levels = canvas * 255
    levels += 0.5
    np.maximum(levels, 0, out=levels)
    np.minimum(levels, 255, out=levels)
    pixels = np.empty((*canvas.shape[1:], 3), np.uint8)
    for channel, values in enumerate(levels):
        pixels[..., channel] = values
    return list(pixels)
