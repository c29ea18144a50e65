"""A picture as it goes with a request: upright, no larger than needed, the same bytes every time."""

import hashlib
import io

from PIL import Image as Picture

from culturekit.core.errors import UsageError
from culturekit.core.pictures.picture_reading import Pixels
from culturekit.llm.client import Image

_LONGEST_SIDE = 1024


def image_of(pixels: Pixels, *, longest: int = _LONGEST_SIDE) -> Image:
    """Scale the longer side of a picture down to at most `longest` pixels, and write it in the one way.

    Nothing of a file but its pixels remains: no place, no camera, no thumbnail.
    """
    if longest < 1:
        raise UsageError("a picture has at least one pixel", expected="longest of 1 or more", found=str(longest))
    picture = Picture.fromarray(pixels)
    scale = longest / max(picture.size)
    if scale < 1:
        size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(size, Picture.Resampling.LANCZOS)
    held = io.BytesIO()
    picture.save(held, "PNG", compress_level=6)
    content = held.getvalue()
    return Image(content, "image/png", hashlib.sha256(content).hexdigest(), picture.width, picture.height)
