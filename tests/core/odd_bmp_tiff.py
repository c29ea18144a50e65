"""BMP and TIFF files: in runs, strips, tiles and planes, deep, of inks, of pages."""

import numpy as np
from PIL import Image

from tests.core.odd_kinds import WHITE, OddPicture, grey, kind, noise, on_white, saved, smooth, turned
from tests.core.tiff_writing import tiff_file

__all__: list[str] = []


@kind("bmp")
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


@kind("bmp in runs")
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


@kind("tiff in odd strips, tiles, planes")
def tiff_layout(rng: np.random.Generator) -> OddPicture:
    s, way = noise(rng, 3).astype(np.uint8), int(rng.integers(1, 9))
    layout: dict[str, object] = {"strip_rows": int(rng.integers(1, 40)), "big_end": bool(rng.integers(2))}
    if rng.integers(3) == 0:
        layout["tile"] = (16, 32)
    elif rng.integers(2):
        layout["planes"] = True
    file = tiff_file(s, {274: way}, **layout)  # type: ignore[arg-type]
    return OddPicture(file, turned(s, way), changed=("turned upright",) if way > 1 else ())


@kind("tiff of sixteen bits")
def tiff_deep(rng: np.random.Generator) -> OddPicture:
    s = noise(rng, 1, 65536).astype(np.uint16)
    white_first = int(rng.integers(2))
    shown = grey(s >> 8)
    right = 255 - shown if white_first else shown
    order = bool(rng.integers(2)) and not white_first
    file = tiff_file(s, {262: 1 - white_first}, big_end=order, strip_rows=int(rng.integers(1, 40)))
    return OddPicture(file, right, changed=("16 bits to 8",))


@kind("tiff without a stated white")
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


@kind("tiff packed")
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


@kind("tiff of inks, of pages")
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


@kind("tiff of lightness")
def tiff_lab(rng: np.random.Generator) -> OddPicture:
    level = rng.integers(0, 256, (9, 9, 1)).astype(np.uint8)
    s = np.dstack([level, np.zeros((9, 9, 2), np.uint8)])
    tone = (level / 255.0 * 100 + 16) / 116
    linear = np.where(tone > 6 / 29, tone**3, 3 * (6 / 29) ** 2 * (tone - 4 / 29))
    display = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return OddPicture(tiff_file(s, {262: 8}), grey(np.rint(display * 255)), 4, ("LAB to RGB",))
