"""What picture files of odd kinds are made of: samples from a seed, and the pixels that a person would see of them."""

import io
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Array = NDArray[np.uint8]


@dataclass(frozen=True)
class OddPicture:
    """A file, and what should come of it."""

    content: bytes
    right: Array
    tolerance: int = 0
    changed: tuple[str, ...] = ()


Make = Callable[[np.random.Generator], OddPicture]
KINDS: dict[str, Make] = {}


def kind(name: str) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        KINDS[name] = make
        return make

    return register


def noise(rng: np.random.Generator, parts: int, top: int = 256) -> NDArray[np.int64]:
    height, width = rng.integers(1, 70, 2)
    return rng.integers(0, top, (height, width, parts))


def smooth(rng: np.random.Generator, parts: int = 3) -> Array:
    """Draw a gradient, which a lossy format keeps nearly as it is."""
    height, width = rng.integers(16, 70, 2)
    down, across = np.mgrid[0:height, 0:width]
    slopes = rng.uniform(-2, 2, (2, parts))
    values = rng.uniform(80, 170, parts) + down[..., None] * slopes[0] + across[..., None] * slopes[1]
    return np.asarray(values.clip(0, 255).round(), np.uint8)


def grey(samples: NDArray[np.integer] | NDArray[np.floating]) -> Array:
    return np.repeat(samples.astype(np.uint8), 3, axis=2)


def on_white(colour: NDArray[np.integer], alpha: NDArray[np.integer]) -> Array:
    """Lay colours, (.., 3), on white through alpha, (.., 1), both of 8 bits."""
    share = alpha.astype(float) / 255
    return np.rint(colour * share + 255 * (1 - share)).astype(np.uint8)


def saved(array: NDArray[np.generic] | Image.Image, form: str, **options: object) -> bytes:
    held = io.BytesIO()
    (array if isinstance(array, Image.Image) else Image.fromarray(array)).save(held, form, **options)
    return held.getvalue()


def turned(stored: Array, orientation: int) -> Array:
    """Turn stored pixels upright, by the words of the EXIF standard."""
    return {
        1: stored, 2: np.fliplr(stored), 3: np.rot90(stored, 2), 4: np.flipud(stored), 5: np.rot90(np.fliplr(stored)),
        6: np.rot90(stored, -1), 7: np.rot90(np.fliplr(stored), -1), 8: np.rot90(stored),
    }[orientation]  # fmt: skip


def exif(orientation: int) -> bytes:
    """Write an EXIF block with nothing but an orientation, the larger byte first for odd ones."""
    if orientation % 2:
        return b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0" + bytes([orientation]) + bytes(6)
    return b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0" + bytes([orientation, 0]) + bytes(6)


@cache
def packed_zeros(count: int) -> bytes:
    return zlib.compress(bytes(count), 9)


WHITE = ("transparency laid on white",)
