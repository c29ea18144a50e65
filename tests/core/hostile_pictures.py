"""Files that are broken or mean harm, each with the reasons it may be refused for, made from a seed."""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image

from culturekit.core.pictures.picture_files import BROKEN, EMPTY, TOO_COSTLY, TOO_MANY_PIXELS, UNKNOWN_FORMAT
from tests.core.odd_pictures import (
    KINDS,
    SIGNATURE,
    chunk,
    directory,
    odd_picture,
    packed_zeros,
    png_file,
    saved,
    tiff_file,
)


@dataclass(frozen=True)
class HostilePicture:
    """A file, why it may be refused, and whether it may also be read: damage can spare the pixels."""

    content: bytes
    reasons: tuple[str, ...]
    may_be_read: bool = False


Make = Callable[[np.random.Generator], HostilePicture]


def some_picture(rng: np.random.Generator, form: str = "") -> bytes:
    kinds = [name for name in KINDS if name.startswith(form)]
    return odd_picture(kinds[rng.integers(len(kinds))], int(rng.integers(1 << 30))).content


def nothing(rng: np.random.Generator) -> HostilePicture:
    return HostilePicture(b"", (EMPTY,))


def no_picture(rng: np.random.Generator) -> HostilePicture:
    starts = [
        b"%PDF-1.7\n", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", b"\xc5\xd0\xd3\xc6", b"8BPS", b"\0",
        b"<svg xmlns='http://www.w3.org/2000/svg'>", b"<!doctype html>", b"\0\0\0 ftypavif", b"\0\0\0 ftypheic",
        b"\0\0\x01\0\x01\0", b"RIFF\0\0\0\0WAVE", b"P6 9 9 255\n", b"#!/bin/sh\n", b"\x7fELF", b"\xff\xd8", b"GIF88a",
        b"\0\0\0\x0cjP  \r\n\x87\n", b"\x89PN", b"DDS ", b"icns", b"\xd7\xcd\xc6\x9a", b"#define x_width 9\n",
    ]  # fmt: skip
    return HostilePicture(starts[rng.integers(len(starts))] + rng.bytes(int(rng.integers(0, 500))), (UNKNOWN_FORMAT,))


def only_a_start(rng: np.random.Generator) -> HostilePicture:
    starts = [SIGNATURE, b"\xff\xd8\xff", b"GIF89a", b"BM", b"II*\0", b"MM\0*", b"RIFF\0\0\0\0WEBP", b"II+\0", b"MM\0+"]
    return HostilePicture(
        starts[rng.integers(len(starts))] + rng.bytes(int(rng.integers(0, 300))), (BROKEN, TOO_COSTLY, TOO_MANY_PIXELS)
    )


def cut(rng: np.random.Generator) -> HostilePicture:
    content = some_picture(rng)
    return HostilePicture(content[: rng.integers(len(content))], (BROKEN, EMPTY, UNKNOWN_FORMAT), may_be_read=True)


def png_cut(rng: np.random.Generator) -> HostilePicture:
    content = png_file(rng.integers(0, 256, (40, 40, 3)))
    return HostilePicture(content[: rng.integers(40, len(content) - 16)], (BROKEN,))


def jpeg_cut(rng: np.random.Generator) -> HostilePicture:
    content = saved(rng.integers(0, 256, (64, 64, 3), np.uint8), "JPEG", quality=95)
    start = content.index(b"\xff\xda")
    return HostilePicture(content[: start + (len(content) - start) * int(rng.integers(1, 90)) // 100], (BROKEN,))


def flipped(rng: np.random.Generator) -> HostilePicture:
    content = bytearray(some_picture(rng))
    for at in rng.integers(0, len(content), rng.integers(1, 20)):
        content[at] ^= 1 << int(rng.integers(8))
    return HostilePicture(bytes(content), (BROKEN, UNKNOWN_FORMAT, TOO_COSTLY, TOO_MANY_PIXELS), may_be_read=True)


def flipped_head(rng: np.random.Generator) -> HostilePicture:
    content = bytearray(some_picture(rng))
    for at in rng.integers(0, min(64, len(content)), rng.integers(1, 6)):
        content[at] = [0, 1, 127, 128, 255, int(rng.integers(256))][rng.integers(6)]
    return HostilePicture(bytes(content), (BROKEN, UNKNOWN_FORMAT, TOO_COSTLY, TOO_MANY_PIXELS), may_be_read=True)


def flipped_tags(rng: np.random.Generator) -> HostilePicture:
    content = bytearray(some_picture(rng, "tiff"))
    start = int.from_bytes(content[4:8], "little" if content[:1] == b"I" else "big")
    for at in rng.integers(min(start, len(content) - 1), len(content), rng.integers(1, 6)):
        content[at] = [0, 1, 127, 128, 255, int(rng.integers(256))][rng.integers(6)]
    return HostilePicture(bytes(content), (BROKEN, TOO_COSTLY, TOO_MANY_PIXELS), may_be_read=True)


def spliced(rng: np.random.Generator) -> HostilePicture:
    one, other = some_picture(rng), some_picture(rng)
    content = one[: rng.integers(len(one))] + other[rng.integers(len(other)) :]
    return HostilePicture(content, (BROKEN, EMPTY, UNKNOWN_FORMAT, TOO_COSTLY, TOO_MANY_PIXELS), may_be_read=True)


def png_changed(rng: np.random.Generator) -> HostilePicture:
    content = bytearray(png_file(rng.integers(0, 256, (20, 20, 3))))
    start = content.index(b"IDAT") + 4
    content[rng.integers(start, len(content) - 16)] ^= 1 << int(rng.integers(8))
    return HostilePicture(bytes(content), (BROKEN,))


def too_many(rng: np.random.Generator) -> HostilePicture:
    width, height = [(60_000, 60_000), (50_000_001, 1), (1, 2_000_000_000), (7072, 7072)][rng.integers(4)]
    head = struct.pack(">IIBBBBB", width, height, 8, int(rng.choice([0, 2, 6])), 0, 0, 0)
    pixels = packed_zeros(50_000_000)
    png = SIGNATURE + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    large = (16_000).to_bytes(2)
    jpeg = bytearray(saved(np.zeros((8, 8, 3), np.uint8), "JPEG", progressive=bool(rng.integers(2))))
    frame = next(at for at in range(len(jpeg)) if jpeg[at] == 0xFF and jpeg[at + 1] in (0xC0, 0xC2))
    jpeg[frame + 5 : frame + 9] = large + large
    gif = bytearray(saved(np.zeros((8, 8), np.uint8), "GIF"))
    gif[6:10] = b"\xff\xff\xff\xff"
    frame_gif = bytearray(saved(np.zeros((8, 8), np.uint8), "GIF"))
    at = frame_gif.index(b"\x2c\0\0\0\0")
    frame_gif[at + 5 : at + 9] = b"\xff\xff\xff\xff"
    webp = b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\xff\xff\x3f\xff\xff\x3f"
    bmp = bytearray(saved(np.zeros((8, 8, 3), np.uint8), "BMP"))
    bmp[18:26] = struct.pack("<ii", 60_000, -60_000)
    tiff = tiff_file(np.zeros((2, 2, 1), np.uint8), {256: 60_000, 257: 60_000})
    files = [png, bytes(jpeg), bytes(gif), bytes(frame_gif), webp, bytes(bmp), tiff]
    return HostilePicture(files[rng.integers(len(files))], (TOO_MANY_PIXELS,))


def no_pixels(rng: np.random.Generator) -> HostilePicture:
    head = struct.pack(">IIBBBBB", *[(0, 5), (5, 0), (0, 0)][rng.integers(3)], 8, 2, 0, 0, 0)
    png = SIGNATURE + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    tiff = tiff_file(np.zeros((2, 2, 1), np.uint8), {256: 0})
    gif = b"GIF89a" + bytes(7) + b"\x2c" + bytes(9) + b"\x02\0;"
    files = [png, tiff, gif]
    return HostilePicture(files[rng.integers(len(files))], (BROKEN,))


def png_short(rng: np.random.Generator) -> HostilePicture:
    head = struct.pack(">IIBBBBB", 3000, 3000, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(int(rng.integers(0, 1000))))
    return HostilePicture(SIGNATURE + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b""), (BROKEN,))


def jpeg_scans(rng: np.random.Generator) -> HostilePicture:
    content = saved(np.full((64, 64, 3), int(rng.integers(256)), np.uint8), "JPEG", progressive=True)
    last = content.rindex(b"\xff\xda")
    return HostilePicture(content[:last] + content[last:-2] * 2000 + b"\xff\xd9", (TOO_COSTLY,))


def jpeg_inks(rng: np.random.Generator) -> HostilePicture:
    content = bytearray(saved(Image.new("CMYK", (16, 16)), "JPEG", progressive=True, subsampling=0))
    frame = content.index(b"\xff\xc2")
    content[frame + 5 : frame + 9] = (7000).to_bytes(2) * 2
    return HostilePicture(bytes(content), (TOO_COSTLY,))


def webp_canvas(rng: np.random.Generator) -> HostilePicture:
    head = b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0"
    return HostilePicture(head + (6_999).to_bytes(3, "little") * 2, (TOO_COSTLY, BROKEN))


def tiff_tags(rng: np.random.Generator) -> HostilePicture:
    tags: dict[int, int | list[int]] = {256: 4, 257: 4, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: 4, 279: 16}
    count = int(rng.integers(200, 2000))
    extra = b"".join(struct.pack("<HHII", 40_000 + at, 1, 1_000_000, 8) for at in range(count))
    body = directory(tags, 8 + 1_000_000)
    entries = struct.pack("<H", len(tags) + count) + body[2 : 2 + 12 * len(tags)] + extra + bytes(4)
    return HostilePicture(b"II*\0" + struct.pack("<I", 1_000_008) + bytes(1_000_000) + entries, (TOO_COSTLY,))


def tiff_tile(rng: np.random.Generator) -> HostilePicture:
    tags = {256: 9, 257: 9, 258: 8, 259: 8, 262: 1, 277: 1, 322: 65_520, 323: 65_520, 324: 8, 325: 9}
    data = packed_zeros(50_000_000)
    return HostilePicture(
        b"II*\0" + struct.pack("<I", 8 + len(data)) + data + directory(tags, 8 + len(data)), (TOO_COSTLY,)
    )


def tiff_nowhere(rng: np.random.Generator) -> HostilePicture:
    wrong: dict[int, int | list[int]] = {273: int(rng.integers(10_000, 1 << 31)), 279: int(rng.integers(0, 1 << 31))}
    return HostilePicture(tiff_file(np.zeros((9, 9, 3), np.uint8), wrong), (BROKEN,), may_be_read=False)


def tiff_circle(rng: np.random.Generator) -> HostilePicture:
    content = bytearray(tiff_file(np.zeros((9, 9, 3), np.uint8), {}))
    start = int.from_bytes(content[4:8], "little")
    entries = int.from_bytes(content[start : start + 2], "little")
    content[start + 2 + 12 * entries : start + 6 + 12 * entries] = start.to_bytes(4, "little")
    return HostilePicture(bytes(content), (BROKEN,), may_be_read=True)


def gif_frames(rng: np.random.Generator) -> HostilePicture:
    content = saved(np.zeros((3, 3), np.uint8), "GIF")
    frame = content.index(b"\x2c\0\0\0\0")
    return HostilePicture(content[:frame] + content[frame:-1] * 50_000 + b";", (BROKEN,), may_be_read=True)


def exif_tags(rng: np.random.Generator) -> HostilePicture:
    count = 4000
    entries = b"".join(struct.pack("<HHII", 40_000 + at, 1, 48_000, 8) for at in range(count))
    block = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", count) + entries + bytes(4)
    return HostilePicture(saved(np.zeros((9, 9, 3), np.uint8), "JPEG", exif=block), (BROKEN,), may_be_read=True)


HOSTILE: dict[str, Make] = {
    name.replace("_", " "): make
    for name, make in list(globals().items())
    if getattr(make, "__annotations__", {}) == {"rng": np.random.Generator, "return": HostilePicture}
}


def hostile_picture(kind: str, seed: int) -> HostilePicture:
    return HOSTILE[kind](np.random.default_rng([seed, zlib.crc32(kind.encode())]))
