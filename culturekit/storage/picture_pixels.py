"""A decoded picture to 8-bit RGB pixels, strip by strip, so that there is never a second copy of it."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.storage.picture_facts import PictureFacts

__all__ = ["Pixels", "rgb_pixels"]

Pixels = NDArray[np.uint8]
"""(height, width, 3), RGB."""

Painter = Callable[[Image.Image, Pixels], bool]
"""Fills the pixels of a strip, and says whether any of it was transparent."""

STRIP_PIXELS = 2**18
WHITE = 255
ALPHA = {"RGBA", "LA", "PA", "RGBa"}
OTHER_COLOURS = {"CMYK", "LAB", "YCbCr"}

SIXTEEN_BITS = {"I;16", "I;16B", "I;16L", "I;16N"}
UNBOUNDED = {"I", "F"}
"""Whole numbers of 32 bits, and floating point: their files do not say which number is white."""

STRIP_ROWS = 256


def rgb_pixels(picture: Image.Image, facts: PictureFacts, lower: Image.Image | None = None) -> tuple[Pixels, list[str]]:
    """Bring a decoded picture to RGB, what is transparent laid on white; and say what was done.

    Args:
        picture: as it was decoded.
        facts: what its file says of it.
        lower: the lower bytes of a coloured picture of 16 bits that has a transparent colour.
    """
    width, height = picture.size
    pixels = np.empty((height, width, 3), np.uint8)
    paint = painter(picture, facts)
    clear = facts.box is not None
    rows = max(1, STRIP_PIXELS // width)
    for top in range(0, height, rows):
        box = (0, top, width, min(top + rows, height))
        out = pixels[top : box[3]]
        clear |= paint(picture if rows >= height else picture.crop(box), out)
        if lower is not None:
            clear |= whiten_deep(out, np.asarray(lower.crop(box)), facts.transparent)
    if facts.box is not None:
        whiten_outside(pixels, facts.box)
    changed = [f"{picture.mode} to RGB"] if picture.mode in OTHER_COLOURS else []
    if facts.bits > 8 or picture.mode in UNBOUNDED:
        changed.append(f"{facts.bits} bits to 8")
    return pixels, [*changed, "transparency laid on white"] if clear else changed


def painter(picture: Image.Image, facts: PictureFacts) -> Painter:
    """Choose how the strips of a picture become RGB."""
    if picture.mode in SIXTEEN_BITS:
        return partial(from_sixteen_bits, facts=facts)
    if picture.mode in UNBOUNDED:
        return partial(from_unbounded, white=white_level(picture), inverted=facts.inverted)
    if picture.mode in ALPHA or (picture.mode == "P" and "transparency" in picture.info):
        return lay_on_white
    key = transparent_key(picture, facts)
    picture.info.pop("transparency", None)
    return partial(plain, key=key)


def transparent_key(picture: Image.Image, facts: PictureFacts) -> tuple[int, ...]:
    """Give the 8-bit value, or the three, of the pixels that are transparent; none for most pictures."""
    if facts.bits > 8:
        return ()
    stored = facts.transparent or (
        (picture.info["transparency"],) if isinstance(picture.info.get("transparency"), int) else ()
    )
    return tuple(sample * 255 // ((1 << facts.bits) - 1) for sample in stored)


def plain(strip: Image.Image, out: Pixels, key: tuple[int, ...]) -> bool:
    """Fill the pixels of a strip that has no transparency but one colour, if any."""
    out[...] = np.asarray(strip if strip.mode == "RGB" else strip.convert("RGB"))
    if not key:
        return False
    clear = (out == np.array(key, np.uint8)).all(axis=2)
    out[clear] = WHITE
    return bool(clear.any())


def lay_on_white(strip: Image.Image, out: Pixels) -> bool:
    """Fill the pixels of a strip whose transparency is graded."""
    layer = strip if strip.mode == "RGBA" else strip.convert("RGBA")
    if layer.getchannel("A").getextrema() == (WHITE, WHITE):
        out[...] = np.asarray(layer.convert("RGB"))
        return False
    ground = Image.new("RGBA", layer.size, "white")
    out[...] = np.asarray(Image.alpha_composite(ground, layer).convert("RGB"))
    return True


def whiten_deep(out: Pixels, lower: Pixels, key: tuple[int, ...]) -> bool:
    """Whiten the pixels that have a transparent colour of 16 bits, from their higher and their lower bytes."""
    clear = ((out.astype(np.uint16) << 8 | lower) == np.array(key, np.uint16)).all(axis=2)
    out[clear] = WHITE
    return bool(clear.any())


def whiten_outside(pixels: Pixels, box: tuple[int, int, int, int]) -> None:
    """Whiten what a first frame leaves uncovered."""
    left, top, right, bottom = box
    pixels[:top] = WHITE
    pixels[bottom:] = WHITE
    pixels[:, :left] = WHITE
    pixels[:, right:] = WHITE


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
    with np.errstate(invalid="ignore"):
        wide = np.asarray(strip, np.float64)
    grey = np.nan_to_num(wide, nan=0.0, posinf=white, neginf=0.0).clip(0, white)
    eight = np.rint(grey * (255 / white)).astype(np.uint8)
    out[...] = (~eight if inverted else eight)[:, :, np.newaxis]
    return False
