"""Which format a picture file has, by its first bytes, and what its header says."""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

# What a picture file says of itself before anything of it is decoded, and which way up it is.

MOST_FRAMES = 1000
"""The frames of a file are counted so far and no further."""


class BrokenPicture(ValueError):
    """The file does not keep to its format; never leaves this package."""


class CostlyPicture(ValueError):
    """The file asks for far more work than its pixels need; never leaves this package."""


@dataclass(frozen=True, slots=True)
class PictureFacts:
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

    @property
    def first_of(self) -> str:
        """Say of how many pictures the first was read."""
        return (
            f"first of {self.frames:,} frames"
            if self.frames <= MOST_FRAMES
            else f"first of more than {MOST_FRAMES:,} frames"
        )


ORIENTATION_TAG = 0x0112
UNSIGNED_SHORT = 3


def exif_orientation(block: bytes | memoryview) -> int:
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
            if tag == ORIENTATION_TAG:
                return value if kind == UNSIGNED_SHORT and count == 1 and 1 <= value <= 8 else 1
    except struct.error:
        return 1
    return 1


def upright(pixels: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """Turn stored pixels, (height, width, 3), as their EXIF orientation asks."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


# What PNG, JPEG and TIFF files say of their picture: size, depth, way up, and how much work it is to read.

SIGNATURE = 8
CRITICAL = {b"IHDR", b"PLTE", b"IDAT", b"IEND"}
DECIDING = CRITICAL | {b"tRNS"}
GREY, COLOUR = 0, 2

STARTS_OF_FRAME = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
PROGRESSIVE = {0xC2, 0xC6, 0xCA, 0xCE}
START_OF_SCAN, END, EXIF = 0xDA, 0xD9, 0xE1
BARE = {0x01, *range(0xD0, 0xD9)}
MOST_SCANS = 200
"""Each scan of a progressive JPEG goes over the whole picture; encoders write about ten."""

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC = 256, 257, 258, 259, 262
ORIENTATION, SAMPLES, STRIP_ROWS, TILE_WIDTH, TILE_HEIGHT = 274, 277, 278, 322, 323
WHITE_IS_ZERO = 0
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
READ = {1: "B", 3: "H", 4: "I", 16: "Q"}
MOST_TAG_BYTES = 32 * 2**20
MOST_TAGS = 4096


def png_facts(content: bytes) -> PictureFacts:
    """Read the chunks of a PNG file.

    Only the chunks that decide pixels are handed to the decoder: texts and profiles, which can unpack to thousands of
    times their size, and the frames after the first never reach it. Chunks that hold pixels keep their check sum.
    """
    header: tuple[int, ...] = ()
    transparent, frames, orientation = b"", 1, 1
    pieces = [(0, SIGNATURE)]
    for name, start, stop in png_chunks(content):
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


def png_chunks(content: bytes) -> Iterator[tuple[bytes, int, int]]:
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


def jpeg_facts(content: bytes) -> PictureFacts:
    """Read the segments before the first scan of a JPEG file."""
    frame, orientation, kind, at = b"", 1, 0, 0
    for marker, start, stop in segments(content):
        at = stop
        if marker in STARTS_OF_FRAME:
            if frame:
                raise BrokenPicture("two frame headers")
            frame, kind = content[start:stop], marker
        elif marker == EXIF and orientation == 1 and content[start : start + 6] == b"Exif\0\0":
            orientation = exif_orientation(memoryview(content)[start:stop])
    if len(frame) < 6 or len(frame) < 6 + 3 * frame[5] or not frame[5]:
        raise BrokenPicture("no frame header")
    parts = [frame[7 + 3 * part] for part in range(frame[5])]
    scans = content.count(b"\xff\xda", at)
    if scans > MOST_SCANS:
        raise CostlyPicture(f"{scans:,} scans")
    coefficients = kind in PROGRESSIVE or (len(parts) > 1 and scans > 1)
    return PictureFacts(
        int.from_bytes(frame[3:5]),
        int.from_bytes(frame[1:3]),
        orientation=orientation,
        bits=frame[0],
        working=coefficient_bytes(parts) if coefficients else 0.0,
        extra=3 * at,
    )


def segments(content: bytes) -> Iterator[tuple[int, int, int]]:
    """List the segments up to the first scan: marker, and where the data start and stop."""
    at = 2
    while True:
        at = content.find(b"\xff", at)
        while 0 <= at < len(content) - 1 and content[at + 1] == 0xFF:
            at += 1
        if at < 0 or at + 4 > len(content):
            raise BrokenPicture("cut before the first scan")
        marker = content[at + 1]
        if marker in BARE or marker == 0:
            at += 2
            continue
        if marker == END:
            raise BrokenPicture("it ends before the first scan")
        stop = at + 2 + int.from_bytes(content[at + 2 : at + 4])
        yield marker, at + 4, min(stop, len(content))
        if marker == START_OF_SCAN:
            return
        at = max(stop, at + 4)


def coefficient_bytes(parts: list[int]) -> float:
    """Count the bytes a pixel that all coefficients take, which more than one scan needs at once: two for each."""
    across = [max(1, part >> 4) for part in parts]
    down = [max(1, part & 15) for part in parts]
    samples = sum(h * v for h, v in zip(across, down, strict=True))
    return 2.0 * samples / (max(across) * max(down))


def tiff_facts(content: bytes) -> PictureFacts:
    """Read the first directory of a TIFF file, and count the others."""
    layout = Layout(content)
    tags, asked, after = layout.directory(layout.first)
    width, height = tags.get(WIDTH, 0), tags.get(HEIGHT, 0)
    samples, bits = tags.get(SAMPLES, 1), tags.get(BITS, 1)
    tile = tags.get(TILE_WIDTH, width) * tags.get(TILE_HEIGHT, min(tags.get(STRIP_ROWS, height), height))
    if samples > 8 or bits > 64:
        raise BrokenPicture("samples of an unknown kind")
    if tile > 4 * max(width * height, 2**20):
        raise CostlyPicture("tiles far larger than the picture")
    raw = samples * max(bits, 8) / 8
    orientation = tags.get(ORIENTATION, 1)
    return PictureFacts(
        width,
        height,
        frames=layout.count(after),
        orientation=orientation if 1 <= orientation <= 8 else 1,
        bits=bits,
        inverted=tags.get(PHOTOMETRIC) == WHITE_IS_ZERO,
        working=raw if tags.get(COMPRESSION, 1) != 1 else 0.0,
        extra=asked + (int(tile * max(raw, 4)) if tile > width * height else 0),
    )


class Layout:
    """The byte order and the widths of a TIFF file, old or big."""

    def __init__(self, content: bytes) -> None:
        """Read the header."""
        self.content = content
        self.order = "<" if content[:2] == b"II" else ">"
        self.big = content[2:4] in (b"+\0", b"\0+")
        (self.first,) = self.read("Q" if self.big else "I", 8 if self.big else 4)

    def read(self, kinds: str, at: int) -> tuple[int, ...]:
        """Read some whole numbers."""
        try:
            return struct.unpack_from(self.order + kinds, self.content, at)
        except struct.error as error:
            raise BrokenPicture("cut") from error

    def directory(self, at: int) -> tuple[Mapping[int, int], int, int]:
        """Read the first value of each whole-number tag, count the bytes of all, and find the next directory."""
        (entries,) = self.read("Q" if self.big else "H", at)
        if entries > MOST_TAGS:
            raise CostlyPicture(f"{entries:,} tags")
        start, size = at + (8 if self.big else 2), 20 if self.big else 12
        tags: dict[int, int] = {}
        asked = 0
        for entry in range(start, start + size * entries, size):
            tag, kind, count = self.read("HHQ" if self.big else "HHI", entry)
            total = SIZES.get(kind, 1) * count
            held = entry + (12 if self.big else 8)
            if total > (8 if self.big else 4):
                asked += total
                (held,) = self.read("Q" if self.big else "I", held)
            if kind in READ and count and held < len(self.content):
                tags[tag] = self.read(READ[kind], held)[0]
        if asked > max(MOST_TAG_BYTES, len(self.content)):
            raise CostlyPicture(f"tags of {asked:,} bytes")
        return tags, asked, self.read("Q" if self.big else "I", start + size * entries)[0]

    def count(self, after: int) -> int:
        """Count the directories from the second on, up to a bound, and as long as they lead to new ones."""
        seen = {0, self.first}
        while after not in seen and len(seen) <= MOST_FRAMES:
            seen.add(after)
            try:
                (entries,) = self.read("Q" if self.big else "H", after)
                after = self.read(
                    "Q" if self.big else "I", after + (8 if self.big else 2) + (20 if self.big else 12) * entries
                )[0]
            except BrokenPicture:
                return len(seen) - 2
        return len(seen) - 1


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
