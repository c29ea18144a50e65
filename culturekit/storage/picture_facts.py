"""What a picture file says of itself before anything of it is decoded, and which way up it is."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_FRAMES", "BrokenPicture", "CostlyPicture", "PictureFacts", "exif_orientation", "upright"]

MOST_FRAMES = 1000
"""The frames of a file are counted so far and no further."""


class BrokenPicture(ValueError):
    """The file does not keep to its format; never leaves this package."""


class CostlyPicture(ValueError):
    """The file asks for far more work than its pixels need; never leaves this package."""


@dataclass(frozen=True, slots=True)
class PictureFacts:
    """The stored size and what decides how the pixels are read.

    Attributes:
        width: of the stored picture, before it is turned upright.
        height: of the stored picture.
        frames: how many pictures the file holds, as far as they were counted.
        orientation: the EXIF orientation, 1 to 8; 1 is upright.
        bits: of a sample of the stored picture, where the decoder does not tell.
        transparent: the one colour that is transparent, in stored samples.
        inverted: whether 0 means white where the decoder does not tell.
        box: of the first frame, left, top, right and bottom; the rest of the picture is transparent.
        working: bytes a pixel that the decoder takes, beside the picture that it fills.
        extra: bytes that it takes beside, whatever the number of pixels.
        pieces: the runs of the file, from and to, that decide its pixels; none for the whole of it.
    """

    width: int
    height: int
    frames: int = 1
    orientation: int = 1
    bits: int = 8
    transparent: tuple[int, ...] = ()
    inverted: bool = False
    box: tuple[int, int, int, int] | None = None
    working: float = 0.0
    extra: int = 0
    pieces: Sequence[tuple[int, int]] = field(default=())

    @property
    def first_of(self) -> str:
        """Say of how many pictures the first was read."""
        return (
            f"first of {self.frames:,} frames"
            if self.frames <= MOST_FRAMES
            else f"first of more than {MOST_FRAMES:,} frames"
        )


ORIENTATION = 0x0112
UNSIGNED_SHORT = 3


def exif_orientation(block: bytes | memoryview) -> int:
    """Find the orientation, 1 to 8, in an EXIF block; 1 where it has none or is broken.

    Only the one entry is read: the other entries of a hostile block can ask for thousands of times its size.
    """
    body = memoryview(block)
    if bytes(body[:6]) == b"Exif\0\0":
        body = body[6:]
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(bytes(body[:4]))
    if order is None:
        return 1
    try:
        (start,) = struct.unpack_from(f"{order}I", body, 4)
        (entries,) = struct.unpack_from(f"{order}H", body, start)
        for entry in range(entries):
            tag, kind, count, value = struct.unpack_from(f"{order}HHIH", body, start + 2 + 12 * entry)
            if tag == ORIENTATION:
                return value if kind == UNSIGNED_SHORT and count == 1 and 1 <= value <= 8 else 1
    except struct.error:
        return 1
    return 1


def upright(pixels: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """Turn stored pixels, (height, width, 3), as their EXIF orientation asks."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)
