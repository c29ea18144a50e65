"""Grey pictures of more than eight bits a sample, brought to eight."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.storage.picture_facts import PictureFacts

__all__ = ["SIXTEEN_BITS", "UNBOUNDED", "from_sixteen_bits", "from_unbounded", "white_level"]

SIXTEEN_BITS = {"I;16", "I;16B", "I;16L", "I;16N"}
UNBOUNDED = {"I", "F"}
"""Whole numbers of 32 bits, and floating point: their files do not say which number is white."""

STRIP_ROWS = 256


def from_sixteen_bits(strip: Image.Image, out: NDArray[np.uint8], facts: PictureFacts) -> bool:
    """Keep the higher eight of the bits that the file states; say whether a pixel has the transparent colour."""
    stored = np.asarray(strip)
    grey = (stored >> max(0, min(facts.bits, 16) - 8)).astype(np.uint8)
    if facts.inverted:
        grey = ~grey
    clear = stored == facts.transparent[0] if facts.transparent else np.zeros(1, bool)
    if clear.any():
        grey[clear] = 255
    out[...] = grey[:, :, np.newaxis]
    return bool(clear.any())


def white_level(picture: Image.Image) -> float:
    """Decide which number is white where the file does not say: the first usual one that no pixel exceeds."""
    highest = 0.0
    for top in range(0, picture.height, STRIP_ROWS):
        rows = np.asarray(picture.crop((0, top, picture.width, min(top + STRIP_ROWS, picture.height))))
        finite = rows[np.isfinite(rows)] if picture.mode == "F" else rows
        highest = max(highest, float(finite.max(initial=0)))
    usual = (1.0, 255.0, 65535.0) if picture.mode == "F" else (255.0, 65535.0)
    return next((white for white in usual if highest <= white), highest)


def from_unbounded(strip: Image.Image, out: NDArray[np.uint8], *, white: float, inverted: bool) -> bool:
    """Scale to eight bits; below nothing is black, above white is white, and what is no number is black.

    Nothing of it is transparent.
    """
    grey = np.nan_to_num(np.asarray(strip, np.float64), nan=0.0, posinf=white, neginf=0.0).clip(0, white)
    eight = np.rint(grey * (255 / white)).astype(np.uint8)
    out[...] = (~eight if inverted else eight)[:, :, np.newaxis]
    return False
