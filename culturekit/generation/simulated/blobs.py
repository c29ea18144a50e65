"""Culture-free pictures: abstract blobs in fresh colours, which show no artifact of any country."""

import numpy as np

from culturekit.generation.simulated.canvas import Field, Numbers, as_scalars, cover, grid, paint
from culturekit.generation.simulated.looks import colours

__all__ = ["BLOB_NUMBERS", "paint_blobs"]

LAYERS = ((0.85, 0.30), (0.25, 0.30), (0.35, 0.24), (0.30, 0.20), (0.30, 0.16), (0.12, 0.12))
"""For each layer, from the lowest: how far from the middle its drops may lie, and how large they are.

The picture is 2 wide. Most layers crowd the middle, where the emblems of artifacts are; so these
pictures look composed, and an encoder finds many different artifacts in them."""

DROPS = 3
PER_LAYER = 3 + 3 * DROPS
BLOB_NUMBERS = 1 + PER_LAYER * len(LAYERS)
"""How many numbers decide a culture-free picture."""


def paint_blobs(canvas: Field, numbers: Numbers) -> None:
    """Paint layers of blobs over n pictures, light over dark over light; numbers is (n, BLOB_NUMBERS)."""
    dark = numbers[:, 0] < 0.5
    for (spread, radius), n in zip(LAYERS, np.split(numbers[:, 1:], len(LAYERS), axis=1), strict=True):
        value = np.where(dark, 0.32, 0.8) + 0.2 * n[:, 2]
        colour = as_scalars(colours(n[:, 0], 0.4 + 0.5 * n[:, 1], value))
        depth = together(n[:, 3:], canvas.shape[-1], spread=spread, radius=radius)
        paint(canvas, colour, cover(depth))
        dark = ~dark


def together(numbers: Numbers, size: int, *, spread: float, radius: float) -> Field:
    """Let drops run together; positive inside the blob, about as deep as the distance to its edge."""
    x, y = grid(size)
    total = np.zeros((len(numbers), size, size), np.float32)
    for drop in np.split(2 * numbers - 1, DROPS, axis=1):
        right, down, reach = as_scalars(drop * (spread, spread, 0.5 * radius) + (0, 0, radius))
        across, along = x - right, y - down
        total += (reach * reach) / (across * across + along * along + 1e-3)
    depth = np.sqrt(total)
    depth -= 1
    depth *= 0.3
    return depth
