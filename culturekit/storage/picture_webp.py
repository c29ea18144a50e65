"""What a WebP file says of its pictures: size, way up, and how many there are."""

from collections.abc import Iterator

from culturekit.storage.picture_facts import BrokenPicture, PictureFacts
from culturekit.storage.picture_orientation import exif_orientation

__all__ = ["webp_facts"]

WORKING = 12.0
"""Its decoder holds two canvases and a copy of the frame, each of four bytes a pixel."""


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
    """List the chunks: name, and where the data start and stop."""
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
