"""Pictures as the bytes of a file: without loss, and the same bytes every time."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.records.choices import PictureFormat

__all__ = ["encoded"]


def encoded(pixels: NDArray[np.uint8], form: PictureFormat = "png") -> bytes:
    """Encode a picture, uint8 (height, width, 3), without loss."""
    buffer = io.BytesIO()
    picture = Image.fromarray(pixels)
    if form == "webp":
        picture.save(buffer, format="WEBP", lossless=True, quality=75, method=4, exact=True)
    else:
        picture.save(buffer, format="PNG", compress_level=6)
    return buffer.getvalue()
