"""Pixels from any picture file, safely: never outside a folder, never more than a header promises."""

import io
import os
import stat
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from culturekit.storage.digests import digest_bytes

__all__ = ["LIMITS", "NoPicture", "PictureLimits", "Pixels", "ReadPicture", "picture_from", "read_bytes_inside"]

Pixels: TypeAlias = NDArray[np.uint8]
"""(height, width, 3), RGB, upright, transparency laid on white."""

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """What is too much."""

    pixels: int = 50_000_000
    bytes: int = 100 * 2**20


LIMITS = PictureLimits()


@dataclass(frozen=True, slots=True)
class ReadPicture:
    """Pixels, and what was done to the stored ones, in words."""

    pixels: Pixels
    format: str
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoPicture:
    """Why there are no pixels."""

    reason: str
    detail: str = ""


def picture_from(content: bytes, *, limits: PictureLimits = LIMITS) -> ReadPicture | NoPicture:
    """Decode a picture."""
    if not content:
        return NoPicture("empty file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(content), formats=FORMATS) as opened:
                if opened.width * opened.height > limits.pixels:
                    return NoPicture("too many pixels", f"{opened.width} x {opened.height}")
                return read(opened)
    except (OSError, ValueError, SyntaxError, EOFError, OverflowError, MemoryError, Image.DecompressionBombError) as e:
        return NoPicture("not a readable picture", type(e).__name__)


def read(opened: Image.Image) -> ReadPicture:
    """Decode what was opened."""
    form, changed = opened.format or "", []
    frames = getattr(opened, "n_frames", 1)
    if frames > 1:
        changed.append(f"first of {frames} frames")
    opened.load()
    if opened.getexif().get(0x0112, 1) not in (0, 1):
        changed.append("turned upright")
    upright = ImageOps.exif_transpose(opened)
    if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
        changed.append("transparency laid on white")
        layer = upright.convert("RGBA")
        flat = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    elif upright.mode == "RGB":
        flat = upright
    else:
        changed.append(f"{upright.mode} to RGB")
        flat = upright.convert("RGB")
    return ReadPicture(np.asarray(flat), form, tuple(changed))


def read_bytes_inside(root: Path, relative: str, *, limits: PictureLimits = LIMITS) -> bytes | NoPicture:
    """Read a file below a folder."""
    path = root / relative
    if not path.resolve().is_relative_to(root.resolve()):
        return NoPicture("outside the folder")
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                return NoPicture("not a plain file")
            if state.st_size > limits.bytes:
                return NoPicture("file too large", f"{state.st_size:,} bytes")
            return file.read()
    except FileNotFoundError:
        return NoPicture("no such file")
    except OSError as error:
        return NoPicture("file cannot be read", error.strerror or "")


def read_inside(
    root: Path, relative: str, *, sha256: str | None = None, limits: PictureLimits = LIMITS
) -> ReadPicture | NoPicture:
    """Read a picture below a folder."""
    content = read_bytes_inside(root, relative, limits=limits)
    if isinstance(content, NoPicture):
        return content
    if sha256 is not None and digest_bytes(content) != sha256:
        return NoPicture("not the file expected")
    return picture_from(content, limits=limits)
