"""Which format a picture file has, by its first bytes, and what its header says."""

from collections.abc import Callable, Iterator, Mapping

from culturekit.storage.picture_facts import MOST_FRAMES, BrokenPicture, PictureFacts, exif_orientation
from culturekit.storage.picture_headers import jpeg_facts, png_facts, tiff_facts

__all__ = ["facts_of", "format_of", "unread_format"]

STARTS = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"II+\0": "TIFF",
    b"MM\0+": "TIFF",
}

UNREAD = {
    b"%PDF": "PDF",
    b"%!PS": "PostScript",
    b"\xc5\xd0\xd3\xc6": "PostScript",
    b"8BPS": "Photoshop",
    b"\0\0\0\x0cjP  ": "JPEG 2000",
    b"\xff\x4f\xff\x51": "JPEG 2000",
    b"\xff\x0a": "JPEG XL",
    b"\0\0\0\x0cJXL ": "JPEG XL",
    b"\0\0\1\0": "an icon",
    b"<svg": "SVG",
    b"<?xml": "XML or SVG",
}

OLD_HEADER = 12
"""Bytes of the header of a BMP file of the first kind."""

EXTENSION, PICTURE = 0x21, 0x2C
"""What a block of a GIF file begins with."""

WORKING = 12.0
"""The decoder of WebP holds two canvases and a copy of the frame, each of four bytes a pixel."""


def format_of(content: bytes) -> str | None:
    """Name the format of a picture, if it is one that is read."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "WEBP"
    return next((kind for start, kind in STARTS.items() if content.startswith(start)), None)


def unread_format(content: bytes) -> str:
    """Name a format that is known but not read, so that its owner can convert it."""
    if content[4:8] == b"ftyp":
        return "AVIF" if content[8:12] in (b"avif", b"avis") else "HEIF or a video"
    return next((name for start, name in UNREAD.items() if content.startswith(start)), "")


def facts_of(kind: str, content: bytes) -> PictureFacts:
    """Read what a file of a known format says of its picture.

    Raises:
        BrokenPicture: it does not keep to its format.
        CostlyPicture: it asks for far more work than its pixels need.
    """
    facts = FACTS[kind](content)
    if facts.width < 1 or facts.height < 1:
        raise BrokenPicture("no pixels")
    return facts


def gif_facts(content: bytes) -> PictureFacts:
    """Read the blocks of a GIF file."""
    if len(content) < 13:
        raise BrokenPicture("cut")
    width, height = little(content, 6), little(content, 8)
    at = 13 + palette_bytes(content[10])
    frames, box = 0, (0, 0, 0, 0)
    while at < len(content) and frames <= MOST_FRAMES:
        if content[at] == EXTENSION:
            at = after_blocks(content, at + 2)
        elif content[at] == PICTURE and at + 10 <= len(content):
            if not frames:
                left, top = little(content, at + 1), little(content, at + 3)
                box = (left, top, left + little(content, at + 5), top + little(content, at + 7))
            frames += 1
            at = after_blocks(content, at + 11 + palette_bytes(content[at + 9]))
        else:
            break
    if not frames:
        raise BrokenPicture("no picture in it")
    width, height = max(width, box[2]), max(height, box[3])
    whole = box == (0, 0, width, height)
    return PictureFacts(width, height, frames=frames, box=None if whole else box)


def little(content: bytes, at: int) -> int:
    """Read two bytes, the smaller first."""
    return content[at] | content[at + 1] << 8


def palette_bytes(flags: int) -> int:
    """Count the bytes of the palette that the flags announce."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def after_blocks(content: bytes, at: int) -> int:
    """Go over data blocks, each with its size before it, to what follows the empty one."""
    while at < len(content) and content[at]:
        at += content[at] + 1
    return at + 1


def webp_facts(content: bytes) -> PictureFacts:
    """Read the chunks of a WebP file."""
    size, frames, orientation = (0, 0), 0, 1
    for name, start, stop in chunks(content):
        if name in (b"VP8 ", b"VP8L", b"VP8X") and size == (0, 0):
            size = stated_size(name, content[start : start + 10])
        if name == b"ANMF":
            frames += 1
        elif name == b"EXIF":
            orientation = exif_orientation(memoryview(content)[start:stop])
    if not all(size):
        raise BrokenPicture("no size")
    return PictureFacts(*size, frames=max(1, frames), orientation=orientation, working=WORKING, extra=len(content))


def chunks(content: bytes) -> Iterator[tuple[bytes, int, int]]:
    """List the chunks of a WebP file: name, and where the data start and stop."""
    at = 12
    while at + 8 <= len(content):
        stop = at + 8 + int.from_bytes(content[at + 4 : at + 8], "little")
        yield content[at : at + 4], at + 8, min(stop, len(content))
        at = stop + (stop & 1)


def stated_size(name: bytes, head: bytes) -> tuple[int, int]:
    """Read width and height from the start of a picture chunk, or of the one that describes the canvas."""
    if len(head) < (5 if name == b"VP8L" else 10):
        raise BrokenPicture("cut")
    if name == b"VP8X":
        return 1 + int.from_bytes(head[4:7], "little"), 1 + int.from_bytes(head[7:10], "little")
    if name == b"VP8L":
        bits = int.from_bytes(head[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return int.from_bytes(head[6:8], "little") & 0x3FFF, int.from_bytes(head[8:10], "little") & 0x3FFF


def bmp_facts(content: bytes) -> PictureFacts:
    """Read the header of a BMP file; a negative height says that the rows go down."""
    if len(content) < 34:
        raise BrokenPicture("cut")
    if int.from_bytes(content[14:18], "little") == OLD_HEADER:
        return PictureFacts(int.from_bytes(content[18:20], "little"), int.from_bytes(content[20:22], "little"))
    width = int.from_bytes(content[18:22], "little", signed=True)
    height = int.from_bytes(content[22:26], "little", signed=True)
    packed = int.from_bytes(content[30:34], "little") in (1, 2)
    return PictureFacts(width, abs(height), working=2.0 if packed else 0.0)


FACTS: Mapping[str, Callable[[bytes], PictureFacts]] = {
    "BMP": bmp_facts,
    "GIF": gif_facts,
    "JPEG": jpeg_facts,
    "PNG": png_facts,
    "TIFF": tiff_facts,
    "WEBP": webp_facts,
}
