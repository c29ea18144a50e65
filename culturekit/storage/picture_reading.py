"""Any picture file to the pixels that a person would see, or to the reason why there are none.

PNG, JPEG, WebP, GIF, BMP and TIFF are read, known by their first bytes; the name of a file says nothing. Of all that is
beside the pixels only the EXIF orientation counts: colour profiles, texts and dates change nothing.
"""

import io
import struct
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from PIL import BmpImagePlugin, GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin
from PIL.ImageFile import ImageFile
from PIL.TiffImagePlugin import TiffImageFile

from culturekit.storage.digests import digest_bytes
from culturekit.storage.picture_facts import BrokenPicture, CostlyPicture, PictureFacts, upright
from culturekit.storage.picture_files import read_bytes_inside
from culturekit.storage.picture_formats import facts_of, format_of, unread_format
from culturekit.storage.picture_limits import (
    BROKEN,
    CHANGED,
    EMPTY,
    LIMITS,
    REASONS,
    TOO_COSTLY,
    TOO_MANY_BYTES,
    TOO_MANY_PIXELS,
    UNKNOWN_FORMAT,
    NoPicture,
    PictureLimits,
)
from culturekit.storage.picture_pixels import Pixels, rgb_pixels

__all__ = [
    "LIMITS",
    "REASONS",
    "NoPicture",
    "PictureLimits",
    "Pixels",
    "ReadPicture",
    "picture_from",
    "read_bytes_inside",
    "read_inside",
]

STORED_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}
"""Bytes a pixel of a decoded picture, by mode; four for all others."""

DECODING_FAILED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    Image.DecompressionBombError,
    struct.error,
    zlib.error,
)
"""What Pillow was seen to raise over broken files; the one list of it."""


@dataclass(frozen=True, slots=True)
class ReadPicture:
    """A picture as a person would see it.

    Attributes:
        pixels: (height, width, 3), RGB, upright, what is transparent laid on white.
        format: of the file, whatever its name: `PNG`, `JPEG`, `WEBP`, `GIF`, `BMP` or `TIFF`.
        changed: what was done to the stored pixels, in words; nothing for most.
    """

    pixels: Pixels
    format: str
    changed: tuple[str, ...] = ()


def read_inside(
    root: Path, relative: str, *, sha256: str | None = None, limits: PictureLimits = LIMITS
) -> ReadPicture | NoPicture:
    """Read the picture in a file below a folder, if it still has the SHA-256 that is expected of it."""
    content = read_bytes_inside(root, relative, limits=limits)
    if isinstance(content, NoPicture):
        return content
    if sha256 is not None and digest_bytes(content) != sha256:
        return NoPicture(CHANGED, f"SHA-256 {digest_bytes(content)}")
    return picture_from(content, limits=limits)


def picture_from(content: bytes, *, limits: PictureLimits = LIMITS) -> ReadPicture | NoPicture:
    """Read the picture in the bytes of a file; never raises over what they are."""
    if not content:
        return NoPicture(EMPTY)
    if len(content) > limits.bytes:
        return NoPicture(TOO_MANY_BYTES, f"{len(content):,} bytes, at most {limits.bytes:,}")
    kind = format_of(content)
    if kind is None:
        return NoPicture(UNKNOWN_FORMAT, unread_format(content))
    try:
        facts = facts_of(kind, content)
        if facts.width * facts.height > limits.pixels:
            size = f"{facts.width} × {facts.height} pixels"
            return NoPicture(TOO_MANY_PIXELS, f"{size}, at most {limits.pixels:,} in all")
        with quiet():
            return decoded(content, kind, facts, limits)
    except CostlyPicture as error:
        return NoPicture(TOO_COSTLY, f"{kind}: {error}")
    except BrokenPicture as error:
        return NoPicture(BROKEN, f"{kind}: {error}")
    except MemoryError:
        return NoPicture(TOO_COSTLY, f"{kind}: out of memory")
    except DECODING_FAILED as error:
        return NoPicture(BROKEN, f"{kind}: {type(error).__name__}")


def decoded(content: bytes, kind: str, facts: PictureFacts, limits: PictureLimits) -> ReadPicture:
    """Decode a picture that its header lets through."""
    opened = opened_picture(content, kind, facts, limits)
    lower = None
    if opened.mode == "RGB" and facts.bits == 16 and facts.transparent:
        lower = opened_picture(content, kind, facts, limits, rawmode="RGB;16L")
    pixels, changed = rgb_pixels(opened, facts, lower)
    opened.close()
    del opened, lower
    if facts.frames > 1:
        changed = [facts.first_of, *changed]
    if facts.orientation != 1:
        pixels, changed = upright(pixels, facts.orientation), [*changed, "turned upright"]
    return ReadPicture(pixels, kind, tuple(changed))


def opened_picture(
    content: bytes, kind: str, facts: PictureFacts, limits: PictureLimits, *, rawmode: str | None = None
) -> ImageFile:
    """Load a picture as it is stored, after its mode says that there is memory for it.

    The lower bytes of 16-bit colours come out where they are read as if the smaller byte came first.
    """
    pieces = facts.pieces or [(0, len(content))]
    whole = pieces == [(0, len(content))]
    opened = DECODERS[kind](io.BytesIO(content if whole else b"".join(content[a:b] for a, b in pieces)))
    if sorted(opened.size) != sorted((facts.width, facts.height)):
        raise BrokenPicture("two sizes stated")
    stored = STORED_BYTES.get(opened.mode, 4) * (1 if rawmode is None else 2)
    held = len(content) + (0 if whole else len(content)) + facts.extra
    needed = held + int(facts.width * facts.height * (stored + max(facts.working, 3)))
    if needed > limits.memory:
        raise CostlyPicture(f"{needed:,} bytes of memory, at most {limits.memory:,}")
    if rawmode is not None:
        opened.tile = [tile._replace(args=rawmode) for tile in opened.tile]
    opened.load()
    return opened


class PlainTiff(TiffImageFile):
    """A TIFF whose pixels are all that is read.

    As it comes, the class reads every tag of every directory below the first once the pixels are there, and turns them
    in a second copy.
    """

    def load_end(self) -> None:
        """Leave the pixels as they are stored, and the tags unread."""
        self._size = self.im.size


DECODERS: Mapping[str, Callable[[BinaryIO], ImageFile]] = {
    "BMP": BmpImagePlugin.BmpImageFile,
    "GIF": GifImagePlugin.GifImageFile,
    "JPEG": JpegImagePlugin.JpegImageFile,
    "PNG": PngImagePlugin.PngImageFile,
    "TIFF": PlainTiff,
    "WEBP": WebPImagePlugin.WebPImageFile,
}


class Silence:
    """How many threads decode; the warnings of Pillow are off while any does."""

    def __init__(self) -> None:
        """Begin with none."""
        self.lock = threading.Lock()
        self.threads = 0
        self.caught = warnings.catch_warnings()

    def begin(self) -> None:
        """Count a thread in."""
        with self.lock:
            if not self.threads:
                self.caught = warnings.catch_warnings()
                self.caught.__enter__()
                warnings.filterwarnings("ignore", module=r"PIL\.")
            self.threads += 1

    def end(self) -> None:
        """Count a thread out."""
        with self.lock:
            self.threads -= 1
            if not self.threads:
                self.caught.__exit__(None, None, None)


SILENCE = Silence()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Pillow from warning of what a picture's own reason says; unlike the standard way, from several threads."""
    SILENCE.begin()
    try:
        yield
    finally:
        SILENCE.end()
