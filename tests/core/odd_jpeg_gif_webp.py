"""JPEG, GIF and WebP files: of inks, turned, animated, with margins, profiles and broken blocks."""

import io
from collections.abc import Mapping

import numpy as np
from PIL import Image

from tests.core.odd_kinds import WHITE, OddPicture, exif, grey, kind, noise, on_white, saved, smooth, turned

__all__: list[str] = []


@kind("jpeg")
def jpeg(rng: np.random.Generator) -> OddPicture:
    s = smooth(rng)
    if rng.integers(2):
        return OddPicture(saved(s[..., 0], "JPEG", quality=97), grey(s[..., :1]), 6)
    extra = {"restart_marker_rows": 1} if rng.integers(2) else {}
    return OddPicture(saved(s, "JPEG", quality=97, subsampling=0, progressive=bool(rng.integers(2)), **extra), s, 10)


@kind("jpeg turned")
def jpeg_turned(rng: np.random.Generator) -> OddPicture:
    s, way = smooth(rng), int(rng.integers(1, 9))
    file = saved(s, "JPEG", quality=97, subsampling=0, exif=b"Exif\0\0" + exif(way))
    return OddPicture(file, turned(s, way), 10, ("turned upright",) if way > 1 else ())


@kind("jpeg with a broken EXIF block")
def jpeg_broken_exif(rng: np.random.Generator) -> OddPicture:
    s = smooth(rng)
    block = bytearray(exif(6)[: rng.integers(0, 18)]) + bytes(rng.integers(0, 256, rng.integers(0, 9), np.uint8))
    return OddPicture(saved(s, "JPEG", quality=97, subsampling=0, exif=b"Exif\0\0" + bytes(block)), s, 10)


@kind("jpeg with a profile and a tail")
def jpeg_profile(rng: np.random.Generator) -> OddPicture:
    s = smooth(rng)
    file = saved(s, "JPEG", quality=97, subsampling=0, icc_profile=rng.bytes(200_000), comment=b"%PDF-1.4")
    return OddPicture(file + b"PK\x05\x06" + rng.bytes(300), s, 10)


@kind("jpeg of four inks")
def jpeg_inks(rng: np.random.Generator) -> OddPicture:
    s = smooth(rng, 4)
    inks = Image.frombytes("CMYK", (s.shape[1], s.shape[0]), s.tobytes())
    left = 255.0 - s
    right = np.rint(left[..., :3] * left[..., 3:] / 255).astype(np.uint8)
    return OddPicture(saved(inks, "JPEG", quality=98, subsampling=0), right, 10, ("CMYK to RGB",))


@kind("jpeg of four inks, the colours as luminance")
def jpeg_luminance_inks(rng: np.random.Generator) -> OddPicture:
    colour, black = smooth(rng), int(rng.integers(0, 200))
    stored = np.asarray(Image.fromarray(255 - colour).convert("YCbCr"))
    layers = np.dstack([255 - stored, np.full(stored.shape[:2], black, np.uint8)])
    file = saved(Image.frombytes("CMYK", stored.shape[1::-1], layers.tobytes()), "JPEG", quality=98, subsampling=0)
    place = file.index(b"Adobe") + 11
    file = file[:place] + b"\x02" + file[place + 1 :]
    right = np.rint(colour * ((255 - black) / 255)).astype(np.uint8)
    return OddPicture(file, right, 12, ("CMYK to RGB",))


@kind("gif")
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


@kind("gif whose first frame leaves a margin")
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


@kind("webp")
def webp(rng: np.random.Generator) -> OddPicture:
    s, way = noise(rng, 3).astype(np.uint8), int(rng.integers(1, 9))
    file = saved(s, "WEBP", lossless=True, exif=b"Exif\0\0" + exif(way), icc_profile=rng.bytes(99))
    return OddPicture(file, turned(s, way), changed=("turned upright",) if way > 1 else ())


@kind("webp, alpha, animated")
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
