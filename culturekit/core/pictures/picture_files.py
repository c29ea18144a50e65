"""Pictures as bytes: written the same each time, and read from a folder outside of which nothing is ever opened."""

import io
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.atomic import machine_fails
from culturekit.core.choices import PictureFormat

# How large a picture may be, and why there is none: the one list of caps and the one list of reasons.

ABSENT = "no picture file"
OUTSIDE = "picture outside its table's folder"
IRREGULAR = "picture is no regular file"
UNOPENED = "picture file cannot be read"
CHANGED = "picture is not the one its table describes"
EMPTY = "picture file is empty"
TOO_MANY_BYTES = "picture file too large"
TOO_MANY_PIXELS = "picture too large"
TOO_COSTLY = "picture too costly to decode"
UNKNOWN_FORMAT = "picture format not read"
BROKEN = "picture cannot be decoded"

# every reason that a `NoPicture` can have, and what it means
REASONS = {
    ABSENT: "there is no such file",
    OUTSIDE: "the path is absolute, climbs, or leads through a link out of the folder; nothing there was opened",
    IRREGULAR: "a folder, a pipe, a socket or a device; it was not opened",
    UNOPENED: "the system does not allow it, or the name cannot be a file's",
    CHANGED: "the file's SHA-256 is another than the one in the table",
    EMPTY: "the file has no bytes",
    TOO_MANY_BYTES: "the file has more bytes than are read",
    TOO_MANY_PIXELS: "the header states more pixels than are decoded",
    TOO_COSTLY: "to decode it would take more memory or work than any honest picture of its size",
    UNKNOWN_FORMAT: "by its first bytes it is no PNG, JPEG, WebP, GIF, BMP or TIFF, whatever its name says",
    BROKEN: "cut, corrupt, or of a kind inside its format that is not read",
}


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """What is read at most: PNG, JPEG, WebP, GIF, BMP and TIFF by their content, up to these limits.

    `memory` bounds the file's bytes, the decoder's working space and the pixels together. A WebP (26 million pixels), a
    progressive JPEG in colour (41 million) or a 16-bit TIFF needs more of it per pixel than others, so that fewer than
    `pixels` are decoded of them. Transparency lies on white, EXIF orientation is followed, the first frame is read, and
    16 bits become 8 by their higher byte.
    """

    pixels: int = 50_000_000
    bytes: int = 100 * 2**20
    memory: int = 400 * 2**20


LIMITS = PictureLimits()


@dataclass(frozen=True, slots=True)
class NoPicture:
    """Why there is no picture: one of `REASONS`, and what was found."""

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else self.reason


def encoded(pixels: NDArray[np.uint8], form: PictureFormat = "png") -> bytes:
    """Encode a picture, uint8 (height, width, 3), without loss."""
    buffer = io.BytesIO()
    picture = Image.fromarray(pixels)
    if form == "webp":
        picture.save(buffer, format="WEBP", lossless=True, quality=75, method=4, exact=True)
    else:
        picture.save(buffer, format="PNG", compress_level=6)
    return buffer.getvalue()


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# a pipe that took the file's place after the look at it would not be waited for
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_bytes_inside(root: Path, relative: str, *, limits: PictureLimits = LIMITS) -> bytes | NoPicture:
    """Read a regular file below a folder, or say why not.

    Links are followed first, and only if they end inside; then the file is opened step by step from the folder,
    following none, so that a link put there in between leads nowhere.

    Raises:
        OSError: the disk fails, or no more files can be open; that is no property of the picture.
    """
    if relative.startswith("/") or ".." in relative.split("/"):
        return NoPicture(OUTSIDE, shown(relative))
    try:
        folder = os.path.realpath(root)
        path = os.path.realpath(f"{folder}/{relative}")
        if path != folder and not path.startswith(folder.rstrip("/") + "/"):
            return NoPicture(OUTSIDE, shown(relative))
        return _read_steps(folder, os.path.relpath(path, folder).split("/"), limits)
    except (FileNotFoundError, NotADirectoryError):
        return NoPicture(ABSENT, shown(relative))
    except OSError as error:
        if machine_fails(error):
            raise
        return NoPicture(UNOPENED, error.strerror or type(error).__name__)
    except ValueError:
        return NoPicture(UNOPENED, "no file can have this name")


def _read_steps(folder: str, steps: list[str], limits: PictureLimits) -> bytes | NoPicture:
    """Go down from a folder, one name at a time, and read what is at the end if it is a regular file."""
    here = os.open(folder, _FOLDER)
    try:
        for step in steps[:-1]:
            below = os.open(step, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        if not stat.S_ISREG(os.stat(steps[-1], dir_fd=here, follow_symlinks=False).st_mode):
            return NoPicture(IRREGULAR)
        descriptor = os.open(steps[-1], _FILE, dir_fd=here)
    finally:
        os.close(here)
    with os.fdopen(descriptor, "rb") as file:
        return _read_regular(file, limits)


def _read_regular(file: BinaryIO, limits: PictureLimits) -> bytes | NoPicture:
    """Read an open file whole, unless it is no regular file, empty, or too large."""
    state = os.fstat(file.fileno())
    if not stat.S_ISREG(state.st_mode):
        return NoPicture(IRREGULAR)
    if state.st_size > limits.bytes:
        return NoPicture(TOO_MANY_BYTES, f"{state.st_size:,} bytes, at most {limits.bytes:,}")
    return file.read(state.st_size) or NoPicture(EMPTY)


def shown(relative: str) -> str:
    """Write a name so that it fits in a table of text, whatever bytes it has."""
    return relative.encode("utf-8", "backslashreplace").decode()
