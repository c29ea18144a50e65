"""What a PNG file says of its picture: size, depth, transparent colour, way up, and the chunks that hold pixels."""

import struct
import zlib
from collections.abc import Iterator

from culturekit.storage.picture_facts import BrokenPicture, PictureFacts
from culturekit.storage.picture_orientation import exif_orientation

__all__ = ["png_facts"]

SIGNATURE = 8
CRITICAL = {b"IHDR", b"PLTE", b"IDAT", b"IEND"}
DECIDING = CRITICAL | {b"tRNS"}
GREY, COLOUR = 0, 2


def png_facts(content: bytes) -> PictureFacts:
    """Read the chunks of a PNG file.

    Only the chunks that decide pixels are handed to the decoder: texts and profiles, which can unpack to thousands of
    times their size, and the frames after the first never reach it. Chunks that hold pixels keep their check sum.
    """
    header: tuple[int, ...] = ()
    transparent, frames, orientation = b"", 1, 1
    pieces = [(0, SIGNATURE)]
    for name, start, stop in chunks(content):
        if name == b"IHDR" and not header:
            header = struct.unpack(">IIBBBBB", body(content, start, stop, 13))
        elif name == b"tRNS":
            transparent = content[start:stop][:256]
        elif name == b"acTL":
            frames = max(1, int.from_bytes(content[start : start + 4]))
        elif name == b"eXIf":
            orientation = exif_orientation(memoryview(content)[start:stop])
        if name in DECIDING:
            pieces = [*pieces[:-1], (pieces[-1][0], stop + 4)] if pieces[-1][1] == start - 8 else [
                *pieces, (start - 8, stop + 4)
            ]  # fmt: skip
    if not header:
        raise BrokenPicture("no header")
    width, height, bits, colour, *_ = header
    return PictureFacts(
        width,
        height,
        frames=frames,
        orientation=orientation,
        bits=bits,
        transparent=samples(transparent, colour, bits),
        pieces=() if pieces == [(0, len(content))] else pieces,
    )


def chunks(content: bytes) -> Iterator[tuple[bytes, int, int]]:
    """List the chunks: name, and where its data start and stop."""
    view = memoryview(content)
    at = SIGNATURE
    while at + 8 <= len(content):
        size = int.from_bytes(view[at : at + 4])
        name = content[at + 4 : at + 8]
        start, stop = at + 8, at + 8 + size
        if name in CRITICAL:
            if stop + 4 > len(content):
                raise BrokenPicture("cut")
            if zlib.crc32(view[at + 4 : stop]) != int.from_bytes(view[stop : stop + 4]):
                raise BrokenPicture("a check sum is wrong")
        yield name, start, min(stop, len(content))
        if name == b"IEND":
            return
        at = stop + 4


def body(content: bytes, start: int, stop: int, size: int) -> bytes:
    """Give the data of a chunk that has one right size."""
    if stop - start != size:
        raise BrokenPicture("the header has another size")
    return content[start:stop]


def samples(transparent: bytes, colour: int, bits: int) -> tuple[int, ...]:
    """Read the one transparent colour of a grey or coloured picture, in stored samples."""
    count = {GREY: 1, COLOUR: 3}.get(colour, 0)
    if not transparent or not count:
        return ()
    if len(transparent) != 2 * count:
        raise BrokenPicture("the transparent colour has another size")
    return tuple(sample & ((1 << bits) - 1) for sample in struct.unpack(f">{count}H", transparent))
