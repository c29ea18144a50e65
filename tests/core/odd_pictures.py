"""Picture files of odd kinds, each with the pixels that a person would see: PNG and TIFF by hand, others by Pillow."""

import io
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOUR_TYPES = {1: 0, 3: 2, 2: 4, 4: 6}
PALETTE = 3
# Of an interlaced file: first row, first column, and the steps down and across
PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_file(
    samples: NDArray[np.integer], *, bits: int = 8, palette: bytes = b"", transparent: bytes = b"",
    interlaced: bool = False, before: Sequence[tuple[bytes, bytes]] = (), after: Sequence[tuple[bytes, bytes]] = (),
) -> bytes:  # fmt: skip
    """Write samples, (height, width, parts), of 1, 2, 4, 8 or 16 bits."""
    height, width, parts = samples.shape
    kind = PALETTE if palette else COLOUR_TYPES[parts]
    passes = PASSES if interlaced else ((0, 0, 1, 1),)
    rows = b"".join(
        packed(samples[top::down, left::across], bits)
        for top, left, down, across in passes
        if samples[top::down, left::across].size
    )
    return b"".join(
        [
            SIGNATURE, chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, int(interlaced))),
            *(chunk(name, data) for name, data in before), chunk(b"PLTE", palette) if palette else b"",
            chunk(b"tRNS", transparent) if transparent else b"", chunk(b"IDAT", zlib.compress(rows, 1)),
            *(chunk(name, data) for name, data in after), chunk(b"IEND", b""),
        ]
    )  # fmt: skip


def packed(samples: NDArray[np.integer], bits: int) -> bytes:
    height = samples.shape[0]
    flat = samples.reshape(height, -1)
    if bits == 16:
        rows = flat.astype(">u2").view(np.uint8).reshape(height, -1)
    elif bits == 8:
        rows = flat.astype(np.uint8)
    else:
        places = np.arange(bits - 1, -1, -1)
        rows = np.packbits((flat[:, :, np.newaxis] >> places & 1).astype(np.uint8).reshape(height, -1), axis=1)
    return np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes()


SHORT, LONG = 3, 4


def tiff_file(
    samples: NDArray[np.generic], tags: Mapping[int, int | Sequence[int]], *, strip_rows: int | None = None,
    tile: tuple[int, int] | None = None, planes: bool = False, big_end: bool = False,
) -> bytes:  # fmt: skip
    """Write samples, (height, width, parts), without compression.

    Args:
        samples: of 8, 16 or 32 bits.
        tags: others, or other values, than those that follow from the samples.
        strip_rows: rows in a strip; all of them where it is not given.
        tile: width and height of a tile, where the picture is tiled.
        planes: whether each part lies for itself.
        big_end: whether the larger byte comes first.
    """
    height, width, parts = samples.shape
    ordered = samples.astype(samples.dtype.newbyteorder(">" if big_end else "<"))
    layers = [ordered[:, :, part : part + 1] for part in range(parts)] if planes else [ordered]
    blocks = [block for layer in layers for block in (tiles(layer, tile) if tile else strips(layer, strip_rows))]
    offsets = [8]
    for block in blocks:
        offsets.append(offsets[-1] + len(block))
    sizes = [len(block) for block in blocks]
    where = {324: offsets[:-1], 325: sizes, 322: tile[0], 323: tile[1]} if tile else {273: offsets[:-1], 279: sizes}
    needed = {
        256: width, 257: height, 258: [8 * samples.dtype.itemsize] * parts, 259: 1, 262: 2 if parts >= 3 else 1,
        277: parts, 278: strip_rows or height, 284: 2 if planes else 1, **where,
    }  # fmt: skip
    order = ">" if big_end else "<"
    start = offsets[-1] + offsets[-1] % 2
    head = (b"MM\0*" if big_end else b"II*\0") + struct.pack(order + "I", start)
    pixels = b"".join(blocks)
    return head + pixels + bytes(start - offsets[-1]) + directory({**needed, **tags}, start, order=order)


def strips(layer: NDArray[np.generic], rows: int | None) -> list[bytes]:
    step = rows or len(layer)
    return [layer[top : top + step].tobytes() for top in range(0, len(layer), step)]


def tiles(layer: NDArray[np.generic], tile: tuple[int, int]) -> list[bytes]:
    """Cut a layer into tiles, the last of each row and column filled up."""
    across, down = tile
    height, width, parts = layer.shape
    full = np.zeros((-(-height // down) * down, -(-width // across) * across, parts), layer.dtype)
    full[:height, :width] = layer
    return [
        full[top : top + down, left : left + across].tobytes()
        for top in range(0, len(full), down)
        for left in range(0, full.shape[1], across)
    ]


def directory(tags: Mapping[int, int | Sequence[int]], start: int, *, order: str = "<", after: int = 0) -> bytes:
    """Write a directory that begins at `start`, its longer values behind it."""
    entries, values = b"", b""
    values_at = start + 2 + 12 * len(tags) + 4
    for tag in sorted(tags):
        value = tags[tag]
        numbers = [value] if isinstance(value, int) else list(value)
        kind, code = (SHORT, "H") if max(numbers) < 65536 and tag not in (273, 279, 324, 325) else (LONG, "I")
        data = struct.pack(f"{order}{len(numbers)}{code}", *numbers)
        if len(data) > 4:
            data, values = struct.pack(order + "I", values_at + len(values)), values + data + bytes(len(data) % 2)
        entries += struct.pack(order + "HHI", tag, kind, len(numbers)) + data.ljust(4, b"\0")
    return struct.pack(order + "H", len(tags)) + entries + struct.pack(order + "I", after) + values


Array = NDArray[np.uint8]


@dataclass(frozen=True)
class OddPicture:
    content: bytes
    right: Array
    tolerance: int = 0
    changed: tuple[str, ...] = ()


Make = Callable[[np.random.Generator], OddPicture]


def noise(rng: np.random.Generator, parts: int, top: int = 256) -> NDArray[np.int64]:
    height, width = rng.integers(1, 70, 2)
    return rng.integers(0, top, (height, width, parts))


def smooth(rng: np.random.Generator, parts: int = 3) -> Array:
    height, width = rng.integers(16, 70, 2)
    down, across = np.mgrid[0:height, 0:width]
    slopes = rng.uniform(-2, 2, (2, parts))
    values = rng.uniform(80, 170, parts) + down[..., None] * slopes[0] + across[..., None] * slopes[1]
    return np.asarray(values.clip(0, 255).round(), np.uint8)


def grey(samples: NDArray[np.integer] | NDArray[np.floating]) -> Array:
    return np.repeat(samples.astype(np.uint8), 3, axis=2)


def on_white(colour: NDArray[np.integer], alpha: NDArray[np.integer]) -> Array:
    """Lay colours, (.., 3), on white through alpha, (.., 1), both of 8 bits."""
    share = alpha.astype(float) / 255
    return np.rint(colour * share + 255 * (1 - share)).astype(np.uint8)


def saved(array: NDArray[np.generic] | Image.Image, form: str, **options: object) -> bytes:
    held = io.BytesIO()
    (array if isinstance(array, Image.Image) else Image.fromarray(array)).save(held, form, **options)
    return held.getvalue()


def turned(stored: Array, orientation: int) -> Array:
    """Turn stored pixels upright, by the words of the EXIF standard."""
    return {
        1: stored, 2: np.fliplr(stored), 3: np.rot90(stored, 2), 4: np.flipud(stored), 5: np.rot90(np.fliplr(stored)),
        6: np.rot90(stored, -1), 7: np.rot90(np.fliplr(stored), -1), 8: np.rot90(stored),
    }[orientation]  # fmt: skip


def exif(orientation: int) -> bytes:
    """Write an EXIF block with nothing but an orientation, the larger byte first for odd ones."""
    if orientation % 2:
        return b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0" + bytes([orientation]) + bytes(6)
    return b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0" + bytes([orientation, 0]) + bytes(6)


@cache
def packed_zeros(count: int) -> bytes:
    return zlib.compress(bytes(count), 9)


WHITE = ("transparency laid on white",)


# PNG: every depth and colour type, every sort of transparency, and much beside the pixels.


def png_colour(rng: np.random.Generator) -> OddPicture:
    pixels = noise(rng, 3)
    return OddPicture(png_file(pixels, interlaced=bool(rng.integers(2))), pixels.astype(np.uint8))


def png_alpha(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 4)
    return OddPicture(png_file(s, interlaced=bool(rng.integers(2))), on_white(s[..., :3], s[..., 3:]), 1, WHITE)


def png_opaque(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 4)
    s[..., 3] = 255
    return OddPicture(png_file(s), s[..., :3].astype(np.uint8))


def png_grey_alpha(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 2)
    return OddPicture(png_file(s), on_white(np.repeat(s[..., :1], 3, 2), s[..., 1:]), 1, WHITE)


def png_few_bits(rng: np.random.Generator) -> OddPicture:
    bits = int(rng.choice([1, 2, 4, 8]))
    s = noise(rng, 1, 1 << bits)
    return OddPicture(png_file(s, bits=bits, interlaced=bool(rng.integers(2))), grey(s * (255 // ((1 << bits) - 1))))


def png_grey_key(rng: np.random.Generator) -> OddPicture:
    bits = int(rng.choice([1, 2, 4, 8, 16]))
    s = noise(rng, 1, 1 << bits)
    key = int(s[0, 0, 0])
    s[-1, -1] = key ^ 1
    shown = s >> 8 if bits == 16 else s * (255 // ((1 << bits) - 1))
    right = grey(np.where(s == key, 255, shown))
    changed: tuple[str, ...] = ("16 bits to 8", *WHITE) if bits == 16 else WHITE
    if s.shape[0] * s.shape[1] == 1:
        right, changed = grey(shown), changed[:-1]
    return OddPicture(png_file(s, bits=bits, transparent=key.to_bytes(2)), right, changed=changed)


def png_colour_key(rng: np.random.Generator) -> OddPicture:
    bits = int(rng.choice([8, 16]))
    s = noise(rng, 3, 1 << bits)
    key = s[0, 0].copy()
    s[-1, -1] = key ^ 1
    near = s.shape[0] * s.shape[1] == 1
    right = (s >> (bits - 8)).astype(np.uint8)
    if not near:
        right[(s == key).all(axis=2)] = 255
    name = b"".join(int(sample).to_bytes(2) for sample in key)
    changed = (*(("16 bits to 8",) if bits == 16 else ()), *(() if near else WHITE))
    return OddPicture(png_file(s, bits=bits, transparent=name), right, changed=changed)


def png_deep(rng: np.random.Generator) -> OddPicture:
    parts = int(rng.integers(1, 5))
    s = noise(rng, parts, 65536)
    high = s >> 8
    colour = high[..., :3] if parts >= 3 else np.repeat(high[..., :1], 3, 2)
    right = on_white(colour, high[..., -1:]) if parts in (2, 4) else colour.astype(np.uint8)
    changed = ("16 bits to 8", *(WHITE if parts in (2, 4) and (high[..., -1] < 255).any() else ()))
    return OddPicture(png_file(s, bits=16), right, int(parts in (2, 4)), changed)


def png_palette(rng: np.random.Generator) -> OddPicture:
    bits = int(rng.choice([1, 2, 4, 8]))
    s = noise(rng, 1, 1 << bits)
    colours = rng.integers(0, 256, (1 << bits, 3))
    file = png_file(s, bits=bits, palette=colours.astype(np.uint8).tobytes(), interlaced=bool(rng.integers(2)))
    return OddPicture(file, colours[s[..., 0]].astype(np.uint8))


def png_palette_alpha(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 1, 256)
    colours = rng.integers(0, 256, (256, 3))
    alphas = rng.integers(0, 255, 256) if rng.integers(2) else np.where(np.arange(256) == s[0, 0, 0], 0, 255)
    file = png_file(s, palette=colours.astype(np.uint8).tobytes(), transparent=alphas.astype(np.uint8).tobytes())
    return OddPicture(file, on_white(colours[s[..., 0]], alphas[s[..., 0]][..., None]), 1, WHITE)


def png_turned(rng: np.random.Generator) -> OddPicture:
    s, way = noise(rng, 3).astype(np.uint8), int(rng.integers(1, 9))
    where = {("before", "after")[rng.integers(2)]: [(b"eXIf", exif(way))]}
    return OddPicture(png_file(s, **where), turned(s, way), changed=("turned upright",) if way > 1 else ())  # type: ignore[arg-type]


def png_texts(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 3).astype(np.uint8)
    bomb = packed_zeros(50_000_000)
    texts = [
        (b"zTXt", b"Comment\0\0" + bomb), (b"iCCP", b"profile\0\0" + bomb),
        (b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + bomb), (b"tEXt", b"no zero"), (b"pHYs", b"short"), (b"gAMA", b""),
    ]  # fmt: skip
    chosen = [texts[at] for at in rng.permutation(len(texts))[:3]]
    return OddPicture(png_file(s, before=chosen, after=chosen[:1]), s)


def png_animated(rng: np.random.Generator) -> OddPicture:
    s, frames = noise(rng, 3).astype(np.uint8), int(rng.integers(2, 3000))
    control = [(b"acTL", frames.to_bytes(4) + bytes(4))]
    stated = f"first of {frames:,} frames" if frames <= 1000 else "first of more than 1,000 frames"
    return OddPicture(png_file(s, before=control, after=[(b"fdAT", b"junk")]), s, changed=(stated,))


def png_polyglot(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 3).astype(np.uint8)
    tail = [b"PK\x03\x04" + bytes(40), b"%PDF-1.7\n", b"<script>alert(1)</script>", chunk(b"IHDR", bytes(13))]
    return OddPicture(png_file(s) + tail[rng.integers(len(tail))], s)


# JPEG, GIF and WebP: of inks, turned, animated, with margins, profiles and broken blocks.


def jpeg(rng: np.random.Generator) -> OddPicture:
    s = smooth(rng)
    if rng.integers(2):
        return OddPicture(saved(s[..., 0], "JPEG", quality=97), grey(s[..., :1]), 6)
    extra = {"restart_marker_rows": 1} if rng.integers(2) else {}
    return OddPicture(saved(s, "JPEG", quality=97, subsampling=0, progressive=bool(rng.integers(2)), **extra), s, 10)


def jpeg_turned(rng: np.random.Generator) -> OddPicture:
    s, way = smooth(rng), int(rng.integers(1, 9))
    file = saved(s, "JPEG", quality=97, subsampling=0, exif=b"Exif\0\0" + exif(way))
    return OddPicture(file, turned(s, way), 10, ("turned upright",) if way > 1 else ())


def jpeg_broken_exif(rng: np.random.Generator) -> OddPicture:
    s = smooth(rng)
    block = bytearray(exif(6)[: rng.integers(0, 18)]) + bytes(rng.integers(0, 256, rng.integers(0, 9), np.uint8))
    return OddPicture(saved(s, "JPEG", quality=97, subsampling=0, exif=b"Exif\0\0" + bytes(block)), s, 10)


def jpeg_profile(rng: np.random.Generator) -> OddPicture:
    s = smooth(rng)
    file = saved(s, "JPEG", quality=97, subsampling=0, icc_profile=rng.bytes(200_000), comment=b"%PDF-1.4")
    return OddPicture(file + b"PK\x05\x06" + rng.bytes(300), s, 10)


def jpeg_inks(rng: np.random.Generator) -> OddPicture:
    s = smooth(rng, 4)
    inks = Image.frombytes("CMYK", (s.shape[1], s.shape[0]), s.tobytes())
    left = 255.0 - s
    right = np.rint(left[..., :3] * left[..., 3:] / 255).astype(np.uint8)
    return OddPicture(saved(inks, "JPEG", quality=98, subsampling=0), right, 10, ("CMYK to RGB",))


def jpeg_luminance_inks(rng: np.random.Generator) -> OddPicture:
    colour, black = smooth(rng), int(rng.integers(0, 200))
    stored = np.asarray(Image.fromarray(255 - colour).convert("YCbCr"))
    layers = np.dstack([255 - stored, np.full(stored.shape[:2], black, np.uint8)])
    file = saved(Image.frombytes("CMYK", stored.shape[1::-1], layers.tobytes()), "JPEG", quality=98, subsampling=0)
    flag = file.index(b"Adobe") + 11
    file = file[:flag] + b"\x02" + file[flag + 1 :]
    right = np.rint(colour * ((255 - black) / 255)).astype(np.uint8)
    return OddPicture(file, right, 12, ("CMYK to RGB",))


def gif(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 1, 200)
    colours = rng.integers(0, 256, (256, 3)).astype(np.uint8)
    picture = Image.fromarray(s[..., 0].astype(np.uint8))
    picture.putpalette(colours.tobytes())
    right = colours[s[..., 0]]
    how: Mapping[str, object] = {}
    changed: tuple[str, ...] = ()
    if rng.integers(2):
        key = int(s[0, 0, 0])
        how, changed = {"transparency": key}, WHITE
        right = np.where(s == key, 255, right).astype(np.uint8)
    if frames := int(rng.integers(0, 5)):
        others = [picture.point(lambda index, step=step: (index + step) % 256) for step in range(1, frames + 1)]
        how = {**how, "save_all": True, "append_images": others}
        changed = (f"first of {frames + 1} frames", *changed)
    return OddPicture(saved(picture, "GIF", optimize=False, **how), right, changed=changed)


def gif_margin(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 1, 200)
    colours = rng.integers(0, 256, (256, 3)).astype(np.uint8)
    picture = Image.fromarray(s[..., 0].astype(np.uint8))
    picture.putpalette(colours.tobytes())
    file = bytearray(saved(picture, "GIF", optimize=False))
    left, top = int(rng.integers(1, 9)), int(rng.integers(1, 9))
    height, width = s.shape[:2]
    frame = file.index(b"\x2c\0\0\0\0")
    file[6:10] = (width + left + 2).to_bytes(2, "little") + (height + top + 1).to_bytes(2, "little")
    file[frame + 1 : frame + 5] = left.to_bytes(2, "little") + top.to_bytes(2, "little")
    right = np.full((height + top + 1, width + left + 2, 3), 255, np.uint8)
    right[top:-1, left:-2] = colours[s[..., 0]]
    return OddPicture(bytes(file), right, changed=WHITE)


def webp(rng: np.random.Generator) -> OddPicture:
    s, way = noise(rng, 3).astype(np.uint8), int(rng.integers(1, 9))
    file = saved(s, "WEBP", lossless=True, exif=b"Exif\0\0" + exif(way), icc_profile=rng.bytes(99))
    return OddPicture(file, turned(s, way), changed=("turned upright",) if way > 1 else ())


def webp_animated(rng: np.random.Generator) -> OddPicture:
    s, frames = noise(rng, 4).astype(np.uint8), int(rng.integers(1, 6))
    s[..., 3] |= 1
    first = Image.fromarray(s)
    others = [Image.fromarray(np.roll(s, step, 0) ^ np.uint8(2 * step)) for step in range(1, frames)]
    file = saved(first, "WEBP", lossless=True, exact=True, save_all=True, append_images=others, allow_mixed=False)
    with Image.open(io.BytesIO(file)) as written:
        frames = getattr(written, "n_frames", 1)
    changed = ((f"first of {frames} frames",) if frames > 1 else ()) + (WHITE if (s[..., 3] < 255).any() else ())
    return OddPicture(file, on_white(s[..., :3], s[..., 3:]), 1, changed)


# BMP and TIFF: in runs, strips, tiles and planes, deep, of inks, of pages.


def bmp(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 3).astype(np.uint8)
    match rng.integers(4):
        case 0:
            file = bytearray(saved(s[::-1], "BMP"))
            file[22:26] = (-s.shape[0]).to_bytes(4, "little", signed=True)
            return OddPicture(bytes(file), s)
        case 1:
            return OddPicture(saved(s[..., 0], "BMP"), grey(s[..., :1]))
        case 2:
            return OddPicture(saved(s[..., 0] > 127, "BMP"), grey((s[..., :1] > 127) * 255))
        case _:
            return OddPicture(saved(s, "BMP"), s)


def bmp_runs(rng: np.random.Generator) -> OddPicture:
    s = np.repeat(noise(rng, 1, 256), 3, axis=1)[:, :60]
    height, width = s.shape[:2]
    rows = b"".join(b"".join(bytes([1, int(value)]) for value in row) + b"\0\0" for row in s[::-1, :, 0]) + b"\0\1"
    colours = rng.integers(0, 256, (256, 3)).astype(np.uint8)
    table = b"".join(bytes([b, g, r, 0]) for r, g, b in colours.tolist())
    sizes = (width.to_bytes(4, "little"), height.to_bytes(4, "little"))
    head = (40).to_bytes(4, "little") + b"".join(sizes) + b"\1\0\x08\0\1\0\0\0" + bytes(20)
    start = 14 + 40 + 1024
    file = b"BM" + (start + len(rows)).to_bytes(4, "little") + bytes(4) + start.to_bytes(4, "little")
    return OddPicture(file + head + table + rows, colours[s[..., 0]])


def tiff_layout(rng: np.random.Generator) -> OddPicture:
    s, way = noise(rng, 3).astype(np.uint8), int(rng.integers(1, 9))
    layout: dict[str, object] = {"strip_rows": int(rng.integers(1, 40)), "big_end": bool(rng.integers(2))}
    if rng.integers(3) == 0:
        layout["tile"] = (16, 32)
    elif rng.integers(2):
        layout["planes"] = True
    file = tiff_file(s, {274: way}, **layout)  # type: ignore[arg-type]
    return OddPicture(file, turned(s, way), changed=("turned upright",) if way > 1 else ())


def tiff_deep(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 1, 65536).astype(np.uint16)
    white_first = int(rng.integers(2))
    shown = grey(s >> 8)
    right = 255 - shown if white_first else shown
    order = bool(rng.integers(2)) and not white_first
    file = tiff_file(s, {262: 1 - white_first}, big_end=order, strip_rows=int(rng.integers(1, 40)))
    return OddPicture(file, right, changed=("16 bits to 8",))


def tiff_unbounded(rng: np.random.Generator) -> OddPicture:
    white = float(rng.choice([1, 255, 65535]))
    share = rng.random(noise(rng, 1).shape)
    share[0, 0], share[-1, -1] = 0, 1
    values = (share * white).astype(np.float32)
    values[0, 0] = [np.nan, -5.0, -np.inf][rng.integers(3)] if values.size > 1 else 0
    right = grey(np.rint(np.nan_to_num(values.astype(float), nan=0, neginf=0).clip(0) * (255 / white)))
    if values.size == 1:
        right = grey(np.zeros((1, 1, 1)))
    return OddPicture(tiff_file(values, {339: 3}), right, changed=("32 bits to 8",))


def tiff_packed(rng: np.random.Generator) -> OddPicture:
    how = str(rng.choice(["tiff_lzw", "tiff_adobe_deflate", "packbits", "tiff_deflate"]))
    match rng.integers(5):
        case 0:
            s = noise(rng, 4).astype(np.uint8)
            return OddPicture(saved(s, "TIFF", compression=how), on_white(s[..., :3], s[..., 3:]), 1, WHITE)
        case 1:
            s = noise(rng, 1, 65536).astype(np.uint16)
            return OddPicture(saved(s[..., 0], "TIFF", compression=how), grey(s >> 8), changed=("16 bits to 8",))
        case 2:
            s = noise(rng, 1, 2).astype(np.uint8)
            return OddPicture(saved(s[..., 0] > 0, "TIFF", compression="group4"), grey(s * 255))
        case 3:
            s = smooth(rng)
            return OddPicture(saved(s, "TIFF", compression="jpeg", quality=97), s, 14)
        case _:
            s = noise(rng, 3).astype(np.uint8)
            return OddPicture(saved(s, "TIFF", compression=how, big_tiff=bool(rng.integers(2))), s)


def tiff_inks(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 4).astype(np.uint8)
    if rng.integers(2):
        inks = Image.frombytes("CMYK", (s.shape[1], s.shape[0]), s.tobytes())
        left = 255.0 - s
        right = np.rint(left[..., :3] * left[..., 3:] / 255).astype(np.uint8)
        return OddPicture(saved(inks, "TIFF"), right, 1, ("CMYK to RGB",))
    pages = [Image.fromarray(s[::-1, :, :3])] * int(rng.integers(1, 5))
    file = saved(Image.fromarray(s[..., :3]), "TIFF", save_all=True, append_images=pages)
    return OddPicture(file, s[..., :3], changed=(f"first of {len(pages) + 1} frames",))


def tiff_lab(rng: np.random.Generator) -> OddPicture:
    level = rng.integers(0, 256, (9, 9, 1)).astype(np.uint8)
    s = np.dstack([level, np.zeros((9, 9, 2), np.uint8)])
    tone = (level / 255.0 * 100 + 16) / 116
    linear = np.where(tone > 6 / 29, tone**3, 3 * (6 / 29) ** 2 * (tone - 4 / 29))
    display = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return OddPicture(tiff_file(s, {262: 8}), grey(np.rint(display * 255)), 4, ("LAB to RGB",))


KINDS: dict[str, Make] = {
    name.replace("_", " "): make
    for name, make in list(globals().items())
    if getattr(make, "__annotations__", {}) == {"rng": np.random.Generator, "return": OddPicture}
}


def odd_picture(kind: str, seed: int) -> OddPicture:
    return KINDS[kind](np.random.default_rng([seed, zlib.crc32(kind.encode())]))
