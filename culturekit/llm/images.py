"""A picture from a file, as it goes with a request: upright, no larger than needed, the same bytes every time."""

import hashlib
import io
import warnings
from pathlib import Path
from typing import Literal

from PIL import Image as Picture
from PIL import ImageOps, UnidentifiedImageError

from culturekit.errors import IntegrityError, UsageError
from culturekit.llm.client import Image

__all__ = ["LONGEST_SIDE", "MOST_PIXELS", "image_from_bytes", "image_from_file"]

LONGEST_SIDE = 1024
MOST_PIXELS = 100_000_000
MOST_BYTES = 100 * 2**20
JPEG_QUALITY = 92
UNREADABLE = (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError, Picture.DecompressionBombError)
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")


def image_from_file(path: Path, *, longest: int = LONGEST_SIDE, encoding: Literal["png", "jpeg"] = "png") -> Image:
    """Read a picture from a file.

    Raises:
        UsageError: there is no such file.
        IntegrityError: it holds no picture, a broken one, or too large a one.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError("a picture cannot be read", where=str(path), found=error.strerror or "an error") from error
    return image_from_bytes(content, longest=longest, encoding=encoding, where=str(path))


def image_from_bytes(
    content: bytes, *, longest: int = LONGEST_SIDE, encoding: Literal["png", "jpeg"] = "png", where: str = "a picture"
) -> Image:
    """Turn a picture upright, scale its longer side down to at most `longest` pixels, and write it anew.

    Nothing of the file but its pixels remains: no place, no camera, no thumbnail. What is transparent lies on white,
    and of an animation the first frame counts.

    Raises:
        IntegrityError: it is no picture, a broken one, or too large a one.
    """
    if longest < 1:
        raise UsageError("a picture has at least one pixel", expected="longest of 1 or more", found=str(longest))
    if len(content) > MOST_BYTES:
        raise IntegrityError("a picture is too large", where=where, expected=f"{MOST_BYTES >> 20} MiB at most")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Picture.open(io.BytesIO(content), formats=FORMATS) as opened:
                pixels = small_enough(opened, where)
                upright = ImageOps.exif_transpose(pixels)
    except UNREADABLE as error:
        raise IntegrityError(
            "a picture cannot be read", where=where, expected=", ".join(FORMATS), found=type(error).__name__
        ) from error
    flat = on_white(upright)
    scale = longest / max(flat.size)
    if scale < 1:
        size = (max(1, round(flat.width * scale)), max(1, round(flat.height * scale)))
        flat = flat.resize(size, Picture.Resampling.LANCZOS)
    return written(flat, encoding)


def small_enough(opened: Picture.Image, where: str) -> Picture.Image:
    """Look at the size that a file states before anything is decoded."""
    if opened.width * opened.height > MOST_PIXELS:
        raise IntegrityError(
            "a picture has too many pixels",
            where=where,
            expected=f"at most {MOST_PIXELS // 1_000_000} million",
            found=f"{opened.width} x {opened.height}",
        )
    opened.load()
    return opened


def on_white(picture: Picture.Image) -> Picture.Image:
    """Make a picture of three colours; what is transparent lies on white."""
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        ground = Picture.new("RGBA", layer.size, "white")
        return Picture.alpha_composite(ground, layer).convert("RGB")
    return picture.convert("RGB")


def written(picture: Picture.Image, encoding: Literal["png", "jpeg"]) -> Image:
    """Write pixels, and nothing else, in the one way that gives the same bytes each time."""
    held = io.BytesIO()
    bare = Picture.frombytes("RGB", picture.size, picture.tobytes())
    if encoding == "png":
        bare.save(held, "PNG", compress_level=6)
    else:
        bare.save(held, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    content = held.getvalue()
    return Image(content, f"image/{encoding}", hashlib.sha256(content).hexdigest(), picture.width, picture.height)
