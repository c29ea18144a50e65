"""Which format a picture file has, by its first bytes, and what its header says."""

from collections.abc import Callable, Mapping

from culturekit.storage.picture_bmp import bmp_facts
from culturekit.storage.picture_facts import BrokenPicture, PictureFacts
from culturekit.storage.picture_gif import gif_facts
from culturekit.storage.picture_jpeg import jpeg_facts
from culturekit.storage.picture_png import png_facts
from culturekit.storage.picture_tiff import tiff_facts
from culturekit.storage.picture_webp import webp_facts

__all__ = ["facts_of", "format_of", "unread_format"]

FACTS: Mapping[str, Callable[[bytes], PictureFacts]] = {
    "BMP": bmp_facts,
    "GIF": gif_facts,
    "JPEG": jpeg_facts,
    "PNG": png_facts,
    "TIFF": tiff_facts,
    "WEBP": webp_facts,
}

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
