"""Any picture file to the pixels that a person would see, or to the reason why there are none.

PNG, JPEG, WebP, GIF, BMP and TIFF are read by Pillow, known by their first bytes; the name of a file says nothing. What
a file says of its size and cost is read here first, since Pillow begins to unpack some files as it opens them. Of all
that is beside the pixels only the EXIF orientation counts: colour profiles, texts and dates change nothing.
"""

import io
import struct
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import BmpImagePlugin, GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin
from PIL.ImageFile import ImageFile
from PIL.TiffImagePlugin import TiffImageFile

from culturekit.core.digests import digest_bytes
from culturekit.core.pictures import picture_files as reasons
from culturekit.core.pictures.picture_files import LIMITS, NoPicture, PictureLimits, read_bytes_inside

# What a picture file says of itself before anything of it is decoded, and which way up it is.

Pixels = NDArray[np.uint8]  # (height, width, 3), RGB
_MOST_FRAMES = 1000  # the frames of a file are counted so far and no further


class BrokenPicture(ValueError):
    """The file does not keep to its format; never leaves this package."""


class CostlyPicture(ValueError):
    """The file asks for far more work than its pixels need; never leaves this package."""


@dataclass(frozen=True, slots=True)
class _PictureFacts:
    """The stored size and what decides how the pixels are read.

    Attributes:
        width: of the stored picture, before it is turned upright.
        height: of the stored picture.
        frames: how many pictures the file holds, as far as they were counted.
        orientation: the EXIF orientation, 1 to 8; 1 is upright.
        bits: of a sample of the stored picture, where the decoder does not tell.
        transparent: the one colour that is transparent, in stored samples.
        inverted: whether 0 means white where the decoder does not tell.
        box: of the first frame, left, top, right and bottom; the rest of the picture is transparent.
        working: bytes a pixel that the decoder takes, beside the picture that it fills.
        extra: bytes that it takes beside, whatever the number of pixels.
        pieces: the runs of the file, from and to, that decide its pixels; none for the whole of it.
    """

    width: int
    height: int
    frames: int = 1
    orientation: int = 1
    bits: int = 8
    transparent: tuple[int, ...] = ()
    inverted: bool = False
    box: tuple[int, int, int, int] | None = None
    working: float = 0.0
    extra: int = 0
    pieces: Sequence[tuple[int, int]] = field(default=())


_ORIENTATION_TAG = 0x0112
_UNSIGNED_SHORT = 3


def _exif_orientation(block: bytes | memoryview) -> int:
    """Find the orientation, 1 to 8, in an EXIF block; 1 where it has none or is broken.

    Only the one entry is read: the other entries of a hostile block can ask for thousands of times its size.
    """
    body = memoryview(block)
    if bytes(body[:6]) == b"Exif\0\0":
        body = body[6:]
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(bytes(body[:4]))
    if order is None:
        return 1
    try:
        (start,) = struct.unpack_from(f"{order}I", body, 4)
        (entries,) = struct.unpack_from(f"{order}H", body, start)
        for entry in range(entries):
            tag, kind, count, value = struct.unpack_from(f"{order}HHIH", body, start + 2 + 12 * entry)
            if tag == _ORIENTATION_TAG:
                return value if kind == _UNSIGNED_SHORT and count == 1 and 1 <= value <= 8 else 1
    except struct.error:
        return 1
    return 1


def _upright(pixels: Pixels, orientation: int) -> Pixels:
    """Turn stored pixels, (height, width, 3), as their EXIF orientation asks."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


# What PNG, JPEG and TIFF files say of their picture: size, depth, way up, and how much work it is to read.

_SIGNATURE = 8
_CRITICAL = {b"IHDR", b"PLTE", b"IDAT", b"IEND"}
_DECIDING = _CRITICAL | {b"tRNS"}
GREY, COLOUR = 0, 2
_STARTS_OF_FRAME = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
_PROGRESSIVE = {0xC2, 0xC6, 0xCA, 0xCE}
START_OF_SCAN, END, EXIF = 0xDA, 0xD9, 0xE1
_BARE = {0x01, *range(0xD0, 0xD9)}
_MOST_SCANS = 200  # each scan of a progressive JPEG goes over the whole picture; encoders write about ten
WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC = 256, 257, 258, 259, 262
ORIENTATION, SAMPLES, ROWS_OF_STRIP, TILE_WIDTH, TILE_HEIGHT = 274, 277, 278, 322, 323
_WHITE_IS_ZERO = 0
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
_READ = {1: "B", 3: "H", 4: "I", 16: "Q"}
_MOST_TAG_BYTES = 32 * 2**20
_MOST_TAGS = 4096


def _png_facts(content: bytes) -> _PictureFacts:
    """Read the chunks of a PNG file.

    Only the chunks that decide pixels are handed to the decoder: texts and profiles, which can unpack to thousands of
    times their size, and the frames after the first never reach it. Chunks that hold pixels keep their check sum.
    """
    header: tuple[int, ...] = ()
    transparent, frames, orientation = b"", 1, 1
    pieces = [(0, _SIGNATURE)]
    for name, start, stop in _png_chunks(content):
        if name == b"IHDR" and not header:
            if stop - start != 13:
                raise BrokenPicture("the header has another size")
            header = struct.unpack(">IIBBBBB", content[start:stop])
        elif name == b"tRNS":
            transparent = content[start:stop][:256]
        elif name == b"acTL":
            frames = max(1, int.from_bytes(content[start : start + 4]))
        elif name == b"eXIf":
            orientation = _exif_orientation(memoryview(content)[start:stop])
        if name in _DECIDING:
            pieces = [*pieces[:-1], (pieces[-1][0], stop + 4)] if pieces[-1][1] == start - 8 else [
                *pieces, (start - 8, stop + 4)
            ]  # fmt: skip
    if not header:
        raise BrokenPicture("no header")
    width, height, bits, colour, *_ = header
    return _PictureFacts(
        width, height, frames=frames, orientation=orientation, bits=bits,
        transparent=samples(transparent, colour, bits), pieces=() if pieces == [(0, len(content))] else pieces,
    )  # fmt: skip


def _png_chunks(content: bytes) -> Iterator[tuple[bytes, int, int]]:
    """List the chunks: name, and where its data start and stop."""
    view = memoryview(content)
    at = _SIGNATURE
    while at + 8 <= len(content):
        size = int.from_bytes(view[at : at + 4])
        name = content[at + 4 : at + 8]
        start, stop = at + 8, at + 8 + size
        if name in _CRITICAL:
            if stop + 4 > len(content):
                raise BrokenPicture("cut")
            if zlib.crc32(view[at + 4 : stop]) != int.from_bytes(view[stop : stop + 4]):
                raise BrokenPicture("a check sum is wrong")
        yield name, start, min(stop, len(content))
        if name == b"IEND":
            return
        at = stop + 4


def samples(transparent: bytes, colour: int, bits: int) -> tuple[int, ...]:
    """Read the one transparent colour of a grey or coloured picture, in stored samples."""
    count = {GREY: 1, COLOUR: 3}.get(colour, 0)
    if not transparent or not count:
        return ()
    if len(transparent) != 2 * count:
        raise BrokenPicture("the transparent colour has another size")
    return tuple(sample & ((1 << bits) - 1) for sample in struct.unpack(f">{count}H", transparent))


def _jpeg_facts(content: bytes) -> _PictureFacts:
    """Read the segments before the first scan of a JPEG file."""
    frame, orientation, kind, at = b"", 1, 0, 0
    for marker, start, stop in _segments(content):
        at = stop
        if marker in _STARTS_OF_FRAME:
            if frame:
                raise BrokenPicture("two frame headers")
            frame, kind = content[start:stop], marker
        elif marker == EXIF and orientation == 1 and content[start : start + 6] == b"Exif\0\0":
            orientation = _exif_orientation(memoryview(content)[start:stop])
    if len(frame) < 6 or len(frame) < 6 + 3 * frame[5] or not frame[5]:
        raise BrokenPicture("no frame header")
    parts = [frame[7 + 3 * part] for part in range(frame[5])]
    scans = content.count(b"\xff\xda", at)
    if scans > _MOST_SCANS:
        raise CostlyPicture(f"{scans:,} scans")
    working = 0.0
    if kind in _PROGRESSIVE or (len(parts) > 1 and scans > 1):  # more than one scan needs all coefficients at once
        across, down = [max(1, part >> 4) for part in parts], [max(1, part & 15) for part in parts]
        working = 2.0 * sum(h * v for h, v in zip(across, down, strict=True)) / (max(across) * max(down))
    return _PictureFacts(
        int.from_bytes(frame[3:5]), int.from_bytes(frame[1:3]), orientation=orientation, bits=frame[0], working=working,
        extra=3 * at,
    )  # fmt: skip


def _segments(content: bytes) -> Iterator[tuple[int, int, int]]:
    """List the segments up to the first scan: marker, and where the data start and stop."""
    at = 2
    while True:
        at = content.find(b"\xff", at)
        while 0 <= at < len(content) - 1 and content[at + 1] == 0xFF:
            at += 1
        if at < 0 or at + 4 > len(content):
            raise BrokenPicture("cut before the first scan")
        marker = content[at + 1]
        if marker in _BARE or marker == 0:
            at += 2
            continue
        if marker == END:
            raise BrokenPicture("it ends before the first scan")
        stop = at + 2 + int.from_bytes(content[at + 2 : at + 4])
        yield marker, at + 4, min(stop, len(content))
        if marker == START_OF_SCAN:
            return
        at = max(stop, at + 4)


def _tiff_facts(content: bytes) -> _PictureFacts:
    """Read the first directory of a TIFF file, and count the others."""
    layout = _Layout(content)
    tags, asked, after = layout.directory(layout.first)
    width, height = tags.get(WIDTH, 0), tags.get(HEIGHT, 0)
    samples, bits = tags.get(SAMPLES, 1), tags.get(BITS, 1)
    tile = tags.get(TILE_WIDTH, width) * tags.get(TILE_HEIGHT, min(tags.get(ROWS_OF_STRIP, height), height))
    if samples > 8 or bits > 64:
        raise BrokenPicture("samples of an unknown kind")
    if tile > 4 * max(width * height, 2**20):
        raise CostlyPicture("tiles far larger than the picture")
    raw = samples * max(bits, 8) / 8
    orientation = tags.get(ORIENTATION, 1)
    return _PictureFacts(
        width, height, frames=layout.count(after), orientation=orientation if 1 <= orientation <= 8 else 1, bits=bits,
        inverted=tags.get(PHOTOMETRIC) == _WHITE_IS_ZERO, working=raw if tags.get(COMPRESSION, 1) != 1 else 0.0,
        extra=asked + (int(tile * max(raw, 4)) if tile > width * height else 0),
    )  # fmt: skip


class _Layout:
    """The byte order and the widths of a TIFF file, old or big."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.order = "<" if content[:2] == b"II" else ">"
        self.big = content[2:4] in (b"+\0", b"\0+")
        self.word, self.few, self.width = ("Q", "Q", 8) if self.big else ("I", "H", 4)
        (self.first,) = self.read(self.word, self.width)

    def read(self, kinds: str, at: int) -> tuple[int, ...]:
        try:
            return struct.unpack_from(self.order + kinds, self.content, at)
        except struct.error as error:
            raise BrokenPicture("cut") from error

    def directory(self, at: int) -> tuple[Mapping[int, int], int, int]:
        """Read the first value of each whole-number tag, count the bytes of all, and find the next directory."""
        (entries,) = self.read(self.few, at)
        if entries > _MOST_TAGS:
            raise CostlyPicture(f"{entries:,} tags")
        start, size = at + (8 if self.big else 2), 20 if self.big else 12
        tags: dict[int, int] = {}
        asked = 0
        for entry in range(start, start + size * entries, size):
            tag, kind, count = self.read("HHQ" if self.big else "HHI", entry)
            total = _SIZES.get(kind, 1) * count
            held = entry + (12 if self.big else 8)
            if total > self.width:
                asked += total
                (held,) = self.read(self.word, held)
            if kind in _READ and count and held < len(self.content):
                tags[tag] = self.read(_READ[kind], held)[0]
        if asked > max(_MOST_TAG_BYTES, len(self.content)):
            raise CostlyPicture(f"tags of {asked:,} bytes")
        return tags, asked, self.read(self.word, start + size * entries)[0]

    def count(self, after: int) -> int:
        """Count the directories from the second on, up to a bound, and as long as they lead to new ones."""
        seen = {0, self.first}
        while after not in seen and len(seen) <= _MOST_FRAMES:
            seen.add(after)
            try:
                (entries,) = self.read(self.few, after)
                after += 8 + 20 * entries if self.big else 2 + 12 * entries
                (after,) = self.read(self.word, after)
            except BrokenPicture:
                return len(seen) - 2
        return len(seen) - 1


_STARTS = {
    b"\xff\xd8\xff": "JPEG", b"\x89PNG\r\n\x1a\n": "PNG", b"GIF87a": "GIF", b"GIF89a": "GIF", b"BM": "BMP",
    b"II*\0": "TIFF", b"MM\0*": "TIFF", b"II+\0": "TIFF", b"MM\0+": "TIFF",
}  # fmt: skip

_UNREAD = {
    b"%PDF": "PDF", b"%!PS": "PostScript", b"\xc5\xd0\xd3\xc6": "PostScript", b"8BPS": "Photoshop",
    b"\0\0\0\x0cjP  ": "JPEG 2000", b"\xff\x4f\xff\x51": "JPEG 2000", b"\xff\x0a": "JPEG XL",
    b"\0\0\0\x0cJXL ": "JPEG XL", b"\0\0\1\0": "an icon", b"<svg": "SVG", b"<?xml": "XML or SVG",
}  # fmt: skip

_OLD_HEADER = 12  # bytes of the header of a BMP file of the first kind
EXTENSION, PICTURE = 0x21, 0x2C  # what a block of a GIF file begins with
_WORKING = 12.0  # the decoder of WebP holds two canvases and a copy of the frame, each of four bytes a pixel


def format_of(content: bytes) -> str | None:
    """Name the format of a picture, if it is one that is read."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "WEBP"
    return next((kind for start, kind in _STARTS.items() if content.startswith(start)), None)


def facts_of(kind: str, content: bytes) -> _PictureFacts:
    """Read what a file of a known format says of its picture.

    Raises:
        BrokenPicture: it does not keep to its format.
        CostlyPicture: it asks for far more work than its pixels need.
    """
    facts = _FACTS[kind](content)
    if facts.width < 1 or facts.height < 1:
        raise BrokenPicture("no pixels")
    return facts


def _gif_facts(content: bytes) -> _PictureFacts:
    if len(content) < 13:
        raise BrokenPicture("cut")
    width, height = _little(content, 6, 8), _little(content, 8, 10)
    at = 13 + _palette_bytes(content[10])
    frames, box = 0, (0, 0, 0, 0)
    while at < len(content) and frames <= _MOST_FRAMES:
        if content[at] == EXTENSION:
            at = _after_blocks(content, at + 2)
        elif content[at] == PICTURE and at + 10 <= len(content):
            if not frames:
                left, top, wide, high = (_little(content, at + n, at + n + 2) for n in (1, 3, 5, 7))
                box = (left, top, left + wide, top + high)
            frames += 1
            at = _after_blocks(content, at + 11 + _palette_bytes(content[at + 9]))
        else:
            break
    if not frames:
        raise BrokenPicture("no picture in it")
    width, height = max(width, box[2]), max(height, box[3])
    whole = box == (0, 0, width, height)
    return _PictureFacts(width, height, frames=frames, box=None if whole else box)


def _little(content: bytes, start: int, stop: int) -> int:
    """Read some bytes, the smaller first."""
    return int.from_bytes(content[start:stop], "little")


def _palette_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _after_blocks(content: bytes, at: int) -> int:
    """Go over data blocks, each with its size before it, to what follows the empty one."""
    while at < len(content) and content[at]:
        at += content[at] + 1
    return at + 1


def _webp_facts(content: bytes) -> _PictureFacts:
    size, frames, orientation, at = (0, 0), 0, 1, 12
    while at + 8 <= len(content):
        name, start, end = content[at : at + 4], at + 8, at + 8 + _little(content, at + 4, at + 8)
        stop, at = min(end, len(content)), end + (end & 1)
        if name in (b"VP8 ", b"VP8L", b"VP8X") and size == (0, 0):
            size = _stated_size(name, content[start : start + 10])
        if name == b"ANMF":
            frames += 1
        elif name == b"EXIF":
            orientation = _exif_orientation(memoryview(content)[start:stop])
    if not all(size):
        raise BrokenPicture("no size")
    return _PictureFacts(*size, frames=max(1, frames), orientation=orientation, working=_WORKING, extra=len(content))


def _stated_size(name: bytes, head: bytes) -> tuple[int, int]:
    """Read width and height from the start of a picture chunk, or of the one that describes the canvas."""
    if len(head) < (5 if name == b"VP8L" else 10):
        raise BrokenPicture("cut")
    if name == b"VP8X":
        return 1 + _little(head, 4, 7), 1 + _little(head, 7, 10)
    if name == b"VP8L":
        bits = _little(head, 1, 5)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return _little(head, 6, 8) & 0x3FFF, _little(head, 8, 10) & 0x3FFF


def _bmp_facts(content: bytes) -> _PictureFacts:
    """Read the header of a BMP file; a negative height says that the rows go down."""
    if len(content) < 34:
        raise BrokenPicture("cut")
    if _little(content, 14, 18) == _OLD_HEADER:
        return _PictureFacts(_little(content, 18, 20), _little(content, 20, 22))
    width = int.from_bytes(content[18:22], "little", signed=True)
    height = int.from_bytes(content[22:26], "little", signed=True)
    packed = _little(content, 30, 34) in (1, 2)
    return _PictureFacts(width, abs(height), working=2.0 if packed else 0.0)


_FACTS: Mapping[str, Callable[[bytes], _PictureFacts]] = {
    "BMP": _bmp_facts,
    "GIF": _gif_facts,
    "JPEG": _jpeg_facts,
    "PNG": _png_facts,
    "TIFF": _tiff_facts,
    "WEBP": _webp_facts,
}


# A decoded picture to 8-bit RGB pixels, strip by strip, so that there is never a second copy of it.

# fills the pixels of a strip, and says whether any of it was transparent
_Painter = Callable[[Image.Image, Pixels], bool]
STRIP_PIXELS = 2**18
_WHITE = 255
_ALPHA = {"RGBA", "LA", "PA", "RGBa"}
_OTHER_COLOURS = {"CMYK", "LAB", "YCbCr"}
_SIXTEEN_BITS = {"I;16", "I;16B", "I;16L", "I;16N"}
_UNBOUNDED = {"I", "F"}  # whole numbers of 32 bits, and floating point: their files do not say which number is white
_STRIP_ROWS = 256


def _rgb_pixels(
    picture: Image.Image, facts: _PictureFacts, lower: Image.Image | None = None
) -> tuple[Pixels, list[str]]:
    """Bring a decoded picture to RGB, what is transparent laid on white; and say what was done.

    Args:
        picture: as it was decoded.
        facts: what its file says of it.
        lower: the lower bytes of a coloured picture of 16 bits that has a transparent colour.
    """
    width, height = picture.size
    pixels = np.empty((height, width, 3), np.uint8)
    paint = _painter(picture, facts)
    clear = facts.box is not None
    rows = max(1, STRIP_PIXELS // width)
    for top in range(0, height, rows):
        box = (0, top, width, min(top + rows, height))
        out = pixels[top : box[3]]
        clear |= paint(picture if rows >= height else picture.crop(box), out)
        if lower is not None:
            deep = out.astype(np.uint16) << 8 | np.asarray(lower.crop(box))
            transparent = (deep == np.array(facts.transparent, np.uint16)).all(axis=2)
            out[transparent] = _WHITE
            clear |= bool(transparent.any())
    if facts.box is not None:
        left, upper, right, bottom = facts.box
        pixels[:upper] = pixels[bottom:] = _WHITE
        pixels[:, :left] = pixels[:, right:] = _WHITE
    changed = [f"{picture.mode} to RGB"] if picture.mode in _OTHER_COLOURS else []
    if facts.bits > 8 or picture.mode in _UNBOUNDED:
        changed.append(f"{facts.bits} bits to 8")
    return pixels, [*changed, "transparency laid on white"] if clear else changed


def _painter(picture: Image.Image, facts: _PictureFacts) -> _Painter:
    """Choose how the strips of a picture become RGB."""
    if picture.mode in _SIXTEEN_BITS:
        return partial(_from_sixteen_bits, facts=facts)
    if picture.mode in _UNBOUNDED:
        return partial(_from_unbounded, white=_white_level(picture), inverted=facts.inverted)
    if picture.mode in _ALPHA or (picture.mode == "P" and "transparency" in picture.info):
        return _lay_on_white
    stated = picture.info.pop("transparency", None)
    stored = facts.transparent or ((stated,) if isinstance(stated, int) else ())
    key = () if facts.bits > 8 else tuple(sample * 255 // ((1 << facts.bits) - 1) for sample in stored)
    return partial(_plain, key=key)


def _plain(strip: Image.Image, out: Pixels, key: tuple[int, ...]) -> bool:
    """Fill the pixels of a strip that has no transparency but one colour, if any."""
    out[...] = np.asarray(strip if strip.mode == "RGB" else strip.convert("RGB"))
    if not key:
        return False
    clear = (out == np.array(key, np.uint8)).all(axis=2)
    out[clear] = _WHITE
    return bool(clear.any())


def _lay_on_white(strip: Image.Image, out: Pixels) -> bool:
    """Fill the pixels of a strip whose transparency is graded."""
    layer = strip if strip.mode == "RGBA" else strip.convert("RGBA")
    if layer.getchannel("A").getextrema() == (_WHITE, _WHITE):
        out[...] = np.asarray(layer.convert("RGB"))
        return False
    ground = Image.new("RGBA", layer.size, "white")
    out[...] = np.asarray(Image.alpha_composite(ground, layer).convert("RGB"))
    return True


def _from_sixteen_bits(strip: Image.Image, out: NDArray[np.uint8], facts: _PictureFacts) -> bool:
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


def _white_level(picture: Image.Image) -> float:
    """Decide which number is white where the file does not say: the first usual one that no pixel exceeds."""
    highest = 0.0
    for top in range(0, picture.height, _STRIP_ROWS):
        rows = np.asarray(picture.crop((0, top, picture.width, min(top + _STRIP_ROWS, picture.height))))
        finite = rows[np.isfinite(rows)] if picture.mode == "F" else rows
        highest = max(highest, float(finite.max(initial=0)))
    usual = (1.0, 255.0, 65535.0) if picture.mode == "F" else (255.0, 65535.0)
    return next((white for white in usual if highest <= white), highest)


def _from_unbounded(strip: Image.Image, out: NDArray[np.uint8], *, white: float, inverted: bool) -> bool:
    """Scale to eight bits; below nothing is black, above white is white, and what is no number is black.

    Nothing of it is transparent.
    """
    with np.errstate(invalid="ignore"):
        wide = np.asarray(strip, np.float64)
    grey = np.nan_to_num(wide, nan=0.0, posinf=white, neginf=0.0).clip(0, white)
    eight = np.rint(grey * (255 / white)).astype(np.uint8)
    out[...] = (~eight if inverted else eight)[:, :, np.newaxis]
    return False


# bytes a pixel of a decoded picture, by mode; four for all others
_STORED_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}

# what Pillow was seen to raise over broken files; the one list of it
_DECODING_FAILED = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, OSError, RuntimeError, SyntaxError,
    TypeError, ValueError, Image.DecompressionBombError, struct.error, zlib.error,
)  # fmt: skip


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
        return NoPicture(reasons.CHANGED, f"SHA-256 {digest_bytes(content)}")
    return picture_from(content, limits=limits)


def picture_from(content: bytes, *, limits: PictureLimits = LIMITS) -> ReadPicture | NoPicture:
    """Read the picture in the bytes of a file; never raises over what they are."""
    if not content:
        return NoPicture(reasons.EMPTY)
    if len(content) > limits.bytes:
        return NoPicture(reasons.TOO_MANY_BYTES, f"{len(content):,} bytes, at most {limits.bytes:,}")
    kind = format_of(content)
    if kind is None:  # a format that is known is named, so that its owner can convert it
        name = next((name for start, name in _UNREAD.items() if content.startswith(start)), "")
        if content[4:8] == b"ftyp":
            name = "AVIF" if content[8:12] in (b"avif", b"avis") else "HEIF or a video"
        return NoPicture(reasons.UNKNOWN_FORMAT, name)
    try:
        facts = facts_of(kind, content)
        if facts.width * facts.height > limits.pixels:
            size = f"{facts.width} × {facts.height} pixels"
            return NoPicture(reasons.TOO_MANY_PIXELS, f"{size}, at most {limits.pixels:,} in all")
        with _QUIET:
            return _decoded(content, kind, facts, limits)
    except CostlyPicture as error:
        return NoPicture(reasons.TOO_COSTLY, f"{kind}: {error}")
    except BrokenPicture as error:
        return NoPicture(reasons.BROKEN, f"{kind}: {error}")
    except MemoryError:
        return NoPicture(reasons.TOO_COSTLY, f"{kind}: out of memory")
    except _DECODING_FAILED as error:
        return NoPicture(reasons.BROKEN, f"{kind}: {type(error).__name__}")


def _decoded(content: bytes, kind: str, facts: _PictureFacts, limits: PictureLimits) -> ReadPicture:
    """Decode a picture that its header lets through."""
    opened = _opened_picture(content, kind, facts, limits)
    lower = None
    if opened.mode == "RGB" and facts.bits == 16 and facts.transparent:
        lower = _opened_picture(content, kind, facts, limits, rawmode="RGB;16L")
    pixels, changed = _rgb_pixels(opened, facts, lower)
    opened.close()
    del opened, lower
    if facts.frames > 1:
        many = f"{facts.frames:,}" if facts.frames <= _MOST_FRAMES else f"more than {_MOST_FRAMES:,}"
        changed = [f"first of {many} frames", *changed]
    if facts.orientation != 1:
        pixels, changed = _upright(pixels, facts.orientation), [*changed, "turned upright"]
    return ReadPicture(pixels, kind, tuple(changed))


def _opened_picture(
    content: bytes, kind: str, facts: _PictureFacts, limits: PictureLimits, *, rawmode: str | None = None
) -> ImageFile:
    """Load a picture as it is stored, after its mode says that there is memory for it.

    The lower bytes of 16-bit colours come out where they are read as if the smaller byte came first.
    """
    pieces = facts.pieces or [(0, len(content))]
    whole = pieces == [(0, len(content))]
    opened = DECODERS[kind](io.BytesIO(content if whole else b"".join(content[a:b] for a, b in pieces)))
    if sorted(opened.size) != sorted((facts.width, facts.height)):
        raise BrokenPicture("two sizes stated")
    stored = _STORED_BYTES.get(opened.mode, 4) * (1 if rawmode is None else 2)
    held = len(content) + (0 if whole else len(content)) + facts.extra
    needed = held + int(facts.width * facts.height * (stored + max(facts.working, 3)))
    if needed > limits.memory:
        raise CostlyPicture(f"{needed:,} bytes of memory, at most {limits.memory:,}")
    if rawmode is not None:
        opened.tile = [tile._replace(args=rawmode) for tile in opened.tile]
    opened.load()
    return opened


class _PlainTiff(TiffImageFile):
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
    "TIFF": _PlainTiff,
    "WEBP": WebPImagePlugin.WebPImageFile,
}


class _Quiet:
    """Keeps Pillow from warning while any thread decodes: `warnings.catch_warnings` alone is of one thread."""

    def __init__(self) -> None:
        self.lock, self.threads, self.caught = threading.Lock(), 0, warnings.catch_warnings()

    def __enter__(self) -> None:
        with self.lock:
            if not self.threads:
                self.caught = warnings.catch_warnings()
                self.caught.__enter__()
                warnings.filterwarnings("ignore", module=r"PIL\.")
            self.threads += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.threads -= 1
            if not self.threads:
                self.caught.__exit__(None, None, None)


_QUIET = _Quiet()
