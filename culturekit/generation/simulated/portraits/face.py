"""Draws a person in a tone of the Monk scale under a light, before a wall; or the wall alone."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from culturekit.generation.backend import Pixels
from culturekit.records.monk_scale import MONK_SWATCHES

__all__ = ["LIGHTS", "TONES", "WALL", "WOOD", "draw_face", "skin_of"]

TONES = len(MONK_SWATCHES)

LIGHTS: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {
        "day": (1.0, 1.0, 1.0),
        "lamp": (1.0, 0.88, 0.7),
        "shade": (0.8, 0.86, 0.94),
        "dusk": (0.6, 0.57, 0.55),
        "flash": (1.2, 1.2, 1.2),
    }
)
"""What becomes of red, green and blue under five lights."""

WALL, WOOD = (122, 140, 160), (176, 132, 92)
"""What stands behind a person: a wall that no rule takes for skin, and wood, which looks like skin to both."""

HAIR, CLOTH, EYE = (38, 36, 40), (70, 92, 150), (24, 24, 30)
ROUNDNESS = 0.18
"""How much darker skin is where it turns away from the light."""


def skin_of(tone: int) -> tuple[int, int, int]:
    """Give the colour of a tone, 1 to 10."""
    red, green, blue = bytes.fromhex(MONK_SWATCHES[tone - 1])
    return red, green, blue


def draw_face(
    tone: int | None, *, size: int, light: tuple[float, float, float] = LIGHTS["day"],
    wall: tuple[int, int, int] = WALL, place: tuple[float, float] = (0.5, 0.45),
) -> tuple[Pixels, NDArray[np.bool_]]:  # fmt: skip
    """Draw a face with its centre at `place`; give the picture, and which of its pixels are skin.

    Args:
        tone: of the Monk scale, 1 to 10; None draws nobody.
        size: pixels along each side.
        light: what red, green and blue are multiplied by.
        wall: the colour behind.
        place: down and across, from 0 to 1.
    """
    rows, columns = np.mgrid[0:size, 0:size] / size
    down, across = rows - place[0], columns - place[1]
    canvas = np.broadcast_to(np.asarray(wall, np.float64), (size, size, 3)).copy()
    skin = np.zeros((size, size), bool)
    if tone is not None:
        face = (down / 0.27) ** 2 + (across / 0.2) ** 2
        canvas[((down - 0.5) / 0.25) ** 2 + (across / 0.4) ** 2 < 1] = CLOTH
        canvas[((down + 0.09) / 0.25) ** 2 + (across / 0.23) ** 2 < 1] = HAIR
        skin = (face < 1) & (down > -0.17)
        shade = 1 - ROUNDNESS * np.clip(face + across * 2, 0, 1)
        canvas[skin] = np.asarray(skin_of(tone)) * shade[skin, None]
        for side in (-0.075, 0.075):
            eye = ((down + 0.04) / 0.02) ** 2 + ((across - side) / 0.03) ** 2 < 1
            canvas[eye], skin[eye] = EYE, False
    lit = np.clip(np.rint(canvas * np.asarray(light)), 0, 255).astype(np.uint8)
    return lit, skin
