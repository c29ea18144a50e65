"""What a picture is like, in numbers: where its colours lie, how busy it is, which way its edges run.

All sums run over one picture in a fixed order and without a linear-algebra library, so a picture gets
the same bits in any batch and with any number of threads.
"""

from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Planes", "block_means", "edge_planes", "opponent_planes", "ring_means", "ring_means_and_spread"]

Planes: TypeAlias = NDArray[np.float32]
"""float32 (planes, side, side): one or more values for every pixel of a square picture."""


def opponent_planes(picture: NDArray[np.uint8]) -> Planes:
    """Split a picture into lightness (-0.5 to 0.5), red against green, and yellow against blue (-1 to 1)."""
    red, green, blue = picture.transpose(2, 0, 1).astype(np.float32, order="C")
    planes = np.empty((3, *red.shape), np.float32)
    warm = red + green
    np.add(warm, blue, out=planes[0])
    planes[0] /= 3
    planes[0] -= 127.5
    np.subtract(red, green, out=planes[1])
    np.divide(warm, 2, out=planes[2])
    planes[2] -= blue
    planes *= 1 / 255
    return planes


def edge_planes(lightness: NDArray[np.float32]) -> Planes:
    """Find edges (5, side, side): their strength, and it again along their direction modulo 180 and 90 degrees."""
    planes = np.empty((5, *lightness.shape), np.float32)
    strength, cosine, sine, cosine_twice, sine_twice = planes
    across, down = np.zeros_like(lightness), np.zeros_like(lightness)
    np.subtract(lightness[:, 2:], lightness[:, :-2], out=across[:, 1:-1])
    np.subtract(lightness[2:], lightness[:-2], out=down[1:-1])
    np.multiply(across, across, out=cosine)
    np.multiply(down, down, out=sine)
    np.add(cosine, sine, out=strength)
    np.sqrt(strength, out=strength)
    level = strength + np.float32(0.02)  # what steps by less than 2 % of the range has no direction worth the name
    across /= level
    down /= level
    np.multiply(across, across, out=cosine)
    cosine -= down * down
    np.multiply(across, 2, out=sine)
    sine *= down
    np.multiply(cosine, cosine, out=cosine_twice)
    cosine_twice -= sine * sine
    np.multiply(cosine, 2, out=sine_twice)
    sine_twice *= sine
    planes[1:] *= strength
    return planes


def block_means(planes: Planes, blocks: int) -> Planes:
    """Average each plane over blocks x blocks squares: (planes, blocks, blocks)."""
    count, side, _ = planes.shape
    width = side // blocks
    rows = planes.reshape(count, blocks, width, side).sum(axis=2)
    means: Planes = rows.reshape(count, blocks, blocks, width).sum(axis=3)
    means /= width * width
    return means


def ring_means(planes: Planes, rings: int) -> Planes:
    """Average each plane over rings around the middle: (planes, rings)."""
    half = planes.shape[-1] // 2
    upper = planes[:, :half] + planes[:, : half - 1 : -1]
    quarter = upper[:, :, :half] + upper[:, :, : half - 1 : -1]
    order, starts, sizes = ring_order(half, rings)
    ordered = quarter.reshape(len(planes), -1).take(order, axis=1)
    means: Planes = np.add.reduceat(ordered, starts, axis=1)
    means /= 4 * sizes
    return means


def ring_means_and_spread(planes: Planes, rings: int) -> tuple[Planes, Planes]:
    """Average each plane over rings, and measure its standard deviation within each: both (planes, rings)."""
    both = ring_means(np.concatenate([planes, planes * planes]), rings)
    means, squares = both[: len(planes)], both[len(planes) :]
    return means, np.sqrt(np.maximum(squares - means * means, 0))


@lru_cache(maxsize=8)
def ring_order(half: int, rings: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]:
    """List the pixels of the upper left quarter of a picture ring by ring; the other quarters mirror it.

    Gives that order, where each ring starts in it, and how many pixels it has.
    """
    centres = (np.arange(half) + 0.5) / half - 1
    distance = np.sqrt(centres[:, np.newaxis] ** 2 + centres**2)
    ring = np.minimum((distance * rings).astype(np.intp), rings - 1).ravel()
    sizes = np.bincount(ring, minlength=rings)
    return np.argsort(ring, kind="stable"), np.cumsum(sizes) - sizes, sizes.astype(np.float32)
