"""Which way up a picture is: the orientation in its EXIF block, and its pixels turned upright."""

import struct

import numpy as np
from numpy.typing import NDArray

__all__ = ["exif_orientation", "upright"]

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
