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
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import BmpImagePlugin, GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin
from PIL.ImageFile import ImageFile
from PIL.TiffImagePlugin import TiffImageFile

from culturekit.core.digests import digest_bytes
from culturekit.core.pictures.picture_files import (
    BROKEN,
    CHANGED,
    EMPTY,
    LIMITS,
    TOO_COSTLY,
    TOO_MANY_BYTES,
    TOO_MANY_PIXELS,
    UNKNOWN_FORMAT,
    NoPicture,
    PictureLimits,
    read_bytes_inside,
)
from culturekit.core.pictures.picture_formats import (
    BrokenPicture,
    CostlyPicture,
    PictureFacts,
    facts_of,
    format_of,
    unread_format,
    upright,
)

# A decoded picture to 8-bit RGB pixels, strip by strip, so that there is never a second copy of it.

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
