"""Pictures as the bytes of a file: without loss, and the same bytes every time."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["as_png"]


def as_png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode a picture, uint8 (height, width, 3), without loss."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", compress_level=6)
    return buffer.getvalue()
