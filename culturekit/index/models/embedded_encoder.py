"""An encoder without weights: statistics of colours and edges, enough to tell simulated artifacts apart.

They say where the colours of a picture lie, how busy it is and which way its edges run. All sums run over one picture
in a fixed order and without a linear-algebra library, so a picture gets the same bits in any batch and with any number
of threads.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.registry import Spec
from culturekit.index.encoder import EncoderIdentity, ImageEncoder, Vectors

_SIDE = 64
_BLOCKS = 8
_RINGS = 10
_EDGE_BLOCKS = 4
_MIDDLE = slice(8, 56)  # where edges are looked at, of 64 rows and columns
_SEEN = slice(_MIDDLE.start - 1, _MIDDLE.stop + 1)  # what the edges there are made of
# How much the outermost blocks and the two outermost rings count, against 1 for the others.
#
# What a picture shows stands in its middle. Counted in full, the margin decides too often: an artifact drawn within the
# border of another country is recognised less than half of the time. At 0.2 it is in 99 %.
_MARGIN = 0.2
# float32 (planes, side, side): one or more values for every pixel of a square picture
_Planes: TypeAlias = NDArray[np.float32]


def _weights(weight: float, *, planes: int, cells: NDArray[np.float64], spread: float) -> NDArray[np.float32]:
    """Give a group of planes x cells numbers a weight of its own, however many they are."""
    weights: NDArray[np.float32] = (cells * (weight / spread / np.sqrt(planes * cells.size))).astype(np.float32)
    return weights


# how the groups of statistics enter a vector: less their usual mean, times a weight per cell, the margin counted less;
# means and spreads are what the numbers usually are, measured once on simulated pictures
_IN_BLOCKS = np.pad(np.ones((_BLOCKS - 2, _BLOCKS - 2)), 1, constant_values=_MARGIN)
_IN_RINGS = np.pad(np.ones(_RINGS - 2), (0, 2), constant_values=_MARGIN)
_LAYOUT = 0.06, _weights(1.0, planes=3, cells=_IN_BLOCKS, spread=0.18)
_RING_COLOURS = 0.05, _weights(1.5, planes=3, cells=_IN_RINGS, spread=0.18)
_RING_TEXTURE = 0.16, _weights(0.5, planes=3, cells=_IN_RINGS, spread=0.09)
_EDGES = 0.025, _weights(0.5, planes=5, cells=np.ones((_EDGE_BLOCKS, _EDGE_BLOCKS)), spread=0.07)
_DIMENSIONS = 3 * _BLOCKS**2 + 2 * 3 * _RINGS + 5 * _EDGE_BLOCKS**2


class EmbeddedEncoder:
    """Describes colours and edges; knows nothing of what they depict."""

    identity = EncoderIdentity(
        name="embedded",
        weights="none",
        revision="1",
        preprocessing=f"RGB, whole picture to {_SIDE}x{_SIDE} with Pillow's Hamming filter, margin counted {_MARGIN}",
        dtype="float32",
        dim=_DIMENSIONS,
    )
    caveat = (
        "The embedded encoder compares colours and edges. It tells the pictures of the simulated backend apart "
        "and is not a cultural encoder: what it finds in other images says nothing about them."
    )

    batch_size = 64

    def prepare(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Bring a picture to the encoder's size."""
        if picture.shape == (_SIDE, _SIDE, 3):
            return picture
        return np.asarray(Image.fromarray(picture).resize((_SIDE, _SIDE), Image.Resampling.HAMMING))

    def encode_prepared(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Encode pictures of the encoder's size, one after the other."""
        vectors = np.empty((len(pictures), _DIMENSIONS), np.float32)
        for vector, picture in zip(vectors, pictures, strict=True):
            vector[:] = described(picture)
        return vectors

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Encode pictures of any size, one after the other."""
        return self.encode_prepared([self.prepare(picture) for picture in pictures])


def described(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Describe a picture of the encoder's size by a unit vector."""
    colours = opponent_planes(picture)
    ring_colours, ring_texture = ring_means_and_spread(colours, _RINGS)
    edges = edge_planes(colours[0, _SEEN, _SEEN])[:, 1:-1, 1:-1]
    groups = (
        (_LAYOUT, block_means(colours, _BLOCKS)), (_RING_COLOURS, ring_colours), (_RING_TEXTURE, ring_texture),
        (_EDGES, block_means(edges, _EDGE_BLOCKS)),
    )  # fmt: skip
    vector = np.concatenate([((statistics - mean) * scale).ravel() for (mean, scale), statistics in groups])
    vector /= np.sqrt((vector * vector).sum())
    return vector


def make(spec: Spec) -> ImageEncoder:
    """Make the encoder; it takes no options."""
    spec.refuse_options()
    return EmbeddedEncoder()


def opponent_planes(picture: NDArray[np.uint8]) -> _Planes:
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


def edge_planes(lightness: NDArray[np.float32]) -> _Planes:
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


def block_means(planes: _Planes, blocks: int) -> _Planes:
    """Average each plane over blocks x blocks squares: (planes, blocks, blocks)."""
    count, side, _ = planes.shape
    width = side // blocks
    rows = planes.reshape(count, blocks, width, side).sum(axis=2)
    means: _Planes = rows.reshape(count, blocks, blocks, width).sum(axis=3)
    means /= width * width
    return means


def _ring_means(planes: _Planes, rings: int) -> _Planes:
    """Average each plane over rings around the middle: (planes, rings)."""
    half = planes.shape[-1] // 2
    upper = planes[:, :half] + planes[:, : half - 1 : -1]
    quarter = upper[:, :, :half] + upper[:, :, : half - 1 : -1]
    order, starts, sizes = _ring_order(half, rings)
    ordered = quarter.reshape(len(planes), -1).take(order, axis=1)
    means: _Planes = np.add.reduceat(ordered, starts, axis=1)
    means /= 4 * sizes
    return means


def ring_means_and_spread(planes: _Planes, rings: int) -> tuple[_Planes, _Planes]:
    """Average each plane over rings, and measure its standard deviation within each: both (planes, rings)."""
    both = _ring_means(np.concatenate([planes, planes * planes]), rings)
    means, squares = both[: len(planes)], both[len(planes) :]
    return means, np.sqrt(np.maximum(squares - means * means, 0))


@lru_cache(maxsize=8)
def _ring_order(half: int, rings: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]:
    """List the pixels of the upper left quarter of a picture ring by ring; the other quarters mirror it.

    Gives that order, where each ring starts in it, and how many pixels it has.
    """
    centres = (np.arange(half) + 0.5) / half - 1
    distance = np.sqrt(centres[:, np.newaxis] ** 2 + centres**2)
    ring = np.minimum((distance * rings).astype(np.intp), rings - 1).ravel()
    sizes = np.bincount(ring, minlength=rings)
    return np.argsort(ring, kind="stable"), np.cumsum(sizes) - sizes, sizes.astype(np.float32)
