"""A picture as it goes with a request: upright, no larger than needed, the same bytes every time."""

import hashlib
import io
from typing import Literal

from PIL import Image as Picture

from culturekit.errors import UsageError
from culturekit.llm.client import Image
from culturekit.storage.picture_reading import Pixels

__all__ = ["LONGEST_SIDE", "image_of"]

LONGEST_SIDE = 1024
JPEG_QUALITY = 92

Encoding = Literal["png", "jpeg"]


def image_of(pixels: Pixels, *, longest: int = LONGEST_SIDE, encoding: Encoding = "png") -> Image:
    """Scale the longer side of a picture down to at most `longest` pixels, and write it.

    Nothing of a file but its pixels remains: no place, no camera, no thumbnail.
    """
    if longest < 1:
        raise UsageError("a picture has at least one pixel", expected="longest of 1 or more", found=str(longest))
    picture = Picture.fromarray(pixels)
    scale = longest / max(picture.size)
    if scale < 1:
        size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(size, Picture.Resampling.LANCZOS)
    return written(picture, encoding)


def written(picture: Picture.Image, encoding: Encoding) -> Image:
    """Write pixels, and nothing else, in the one way that gives the same bytes each time."""
    held = io.BytesIO()
    if encoding == "png":
        picture.save(held, "PNG", compress_level=6)
    else:
        picture.save(held, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    content = held.getvalue()
    return Image(content, f"image/{encoding}", hashlib.sha256(content).hexdigest(), picture.width, picture.height)
