"""How large a picture may be, and why there is none: the one list of caps and the one list of reasons."""

from dataclasses import dataclass

__all__ = ["LIMITS", "REASONS", "NoPicture", "PictureLimits"]

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
"""Every reason that a `NoPicture` can have, and what it means."""


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
