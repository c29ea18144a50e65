"""PNG files of every depth and colour type, with every sort of transparency, and with much beside their pixels."""

import numpy as np

from tests.core.odd_kinds import WHITE, OddPicture, exif, grey, kind, noise, on_white, packed_zeros, turned
from tests.core.png_writing import chunk, png_file

__all__: list[str] = []


@kind("png colour")
def png_colour(rng: np.random.Generator) -> OddPicture:
    pixels = noise(rng, 3)
    return OddPicture(png_file(pixels, interlaced=bool(rng.integers(2))), pixels.astype(np.uint8))


@kind("png colour, alpha")
def png_alpha(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 4)
    return OddPicture(png_file(s, interlaced=bool(rng.integers(2))), on_white(s[..., :3], s[..., 3:]), 1, WHITE)


@kind("png colour, alpha that hides nothing")
def png_opaque(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 4)
    s[..., 3] = 255
    return OddPicture(png_file(s), s[..., :3].astype(np.uint8))


@kind("png grey, alpha")
def png_grey_alpha(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 2)
    return OddPicture(png_file(s), on_white(np.repeat(s[..., :1], 3, 2), s[..., 1:]), 1, WHITE)


@kind("png grey of few bits")
def png_few_bits(rng: np.random.Generator) -> OddPicture:
    bits = int(rng.choice([1, 2, 4, 8]))
    s = noise(rng, 1, 1 << bits)
    return OddPicture(png_file(s, bits=bits, interlaced=bool(rng.integers(2))), grey(s * (255 // ((1 << bits) - 1))))


@kind("png grey with a transparent one")
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


@kind("png colour with a transparent one")
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


@kind("png of sixteen bits")
def png_deep(rng: np.random.Generator) -> OddPicture:
    parts = int(rng.integers(1, 5))
    s = noise(rng, parts, 65536)
    high = s >> 8
    colour = high[..., :3] if parts >= 3 else np.repeat(high[..., :1], 3, 2)
    right = on_white(colour, high[..., -1:]) if parts in (2, 4) else colour.astype(np.uint8)
    changed = ("16 bits to 8", *(WHITE if parts in (2, 4) and (high[..., -1] < 255).any() else ()))
    return OddPicture(png_file(s, bits=16), right, int(parts in (2, 4)), changed)


@kind("png palette")
def png_palette(rng: np.random.Generator) -> OddPicture:
    bits = int(rng.choice([1, 2, 4, 8]))
    s = noise(rng, 1, 1 << bits)
    colours = rng.integers(0, 256, (1 << bits, 3))
    file = png_file(s, bits=bits, palette=colours.astype(np.uint8).tobytes(), interlaced=bool(rng.integers(2)))
    return OddPicture(file, colours[s[..., 0]].astype(np.uint8))


@kind("png palette with transparency")
def png_palette_alpha(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 1, 256)
    colours = rng.integers(0, 256, (256, 3))
    alphas = rng.integers(0, 255, 256) if rng.integers(2) else np.where(np.arange(256) == s[0, 0, 0], 0, 255)
    file = png_file(s, palette=colours.astype(np.uint8).tobytes(), transparent=alphas.astype(np.uint8).tobytes())
    return OddPicture(file, on_white(colours[s[..., 0]], alphas[s[..., 0]][..., None]), 1, WHITE)


@kind("png turned")
def png_turned(rng: np.random.Generator) -> OddPicture:
    s, way = noise(rng, 3).astype(np.uint8), int(rng.integers(1, 9))
    place = {("before", "after")[rng.integers(2)]: [(b"eXIf", exif(way))]}
    return OddPicture(png_file(s, **place), turned(s, way), changed=("turned upright",) if way > 1 else ())  # type: ignore[arg-type]


@kind("png with texts and profiles that unpack to 50 MB")
def png_texts(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 3).astype(np.uint8)
    bomb = packed_zeros(50_000_000)
    texts = [
        (b"zTXt", b"Comment\0\0" + bomb), (b"iCCP", b"profile\0\0" + bomb),
        (b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + bomb), (b"tEXt", b"no zero"), (b"pHYs", b"short"), (b"gAMA", b""),
    ]  # fmt: skip
    chosen = [texts[at] for at in rng.permutation(len(texts))[:3]]
    return OddPicture(png_file(s, before=chosen, after=chosen[:1]), s)


@kind("png animated")
def png_animated(rng: np.random.Generator) -> OddPicture:
    s, frames = noise(rng, 3).astype(np.uint8), int(rng.integers(2, 3000))
    control = [(b"acTL", frames.to_bytes(4) + bytes(4))]
    stated = f"first of {frames:,} frames" if frames <= 1000 else "first of more than 1,000 frames"
    return OddPicture(png_file(s, before=control, after=[(b"fdAT", b"junk")]), s, changed=(stated,))


@kind("png that is also something else")
def png_polyglot(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 3).astype(np.uint8)
    tail = [b"PK\x03\x04" + bytes(40), b"%PDF-1.7\n", b"<script>alert(1)</script>", chunk(b"IHDR", bytes(13))]
    return OddPicture(png_file(s) + tail[rng.integers(len(tail))], s)
