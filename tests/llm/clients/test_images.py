import io
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Picture

from culturekit.errors import IntegrityError, UsageError
from culturekit.llm.clients.images import image_from_bytes


def encoded(picture: Picture.Image, kind: str = "PNG", **options: object) -> bytes:
    held = io.BytesIO()
    picture.save(held, kind, **options)
    return held.getvalue()


def pixels(content: bytes) -> Picture.Image:
    return Picture.open(io.BytesIO(content))


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 128), st.sampled_from(["png", "jpeg"]))
def test_a_picture_fits_and_keeps_its_shape(width: int, height: int, longest: int, encoding: str) -> None:
    image = image_from_bytes(encoded(Picture.new("RGB", (width, height))), longest=longest, encoding=encoding)  # type: ignore[arg-type]
    assert max(image.width, image.height) == min(longest, max(width, height))
    assert abs(image.width * height - image.height * width) <= max(width, height)
    assert pixels(image.content).size == (image.width, image.height)
    assert pixels(image.content).format == encoding.upper()


def test_the_same_picture_is_the_same_bytes_whatever_lies_around_its_pixels() -> None:
    picture = Picture.linear_gradient("L").convert("RGB")
    plain, wordy = encoded(picture), encoded(picture, dpi=(72, 72), icc_profile=b"profile")
    assert plain != wordy
    assert image_from_bytes(plain) == image_from_bytes(wordy)
    assert b"profile" not in image_from_bytes(wordy).content


def test_a_picture_taken_sideways_is_turned_upright() -> None:
    picture = Picture.new("RGB", (8, 4), "red")
    exif = Picture.Exif()
    exif[0x0112] = 6
    image = image_from_bytes(encoded(picture, "JPEG", exif=exif))
    assert (image.width, image.height) == (4, 8)
    assert len(pixels(image.content).getexif()) == 0


def test_what_is_transparent_lies_on_white() -> None:
    image = image_from_bytes(encoded(Picture.new("RGBA", (2, 2), (255, 0, 0, 0))))
    assert pixels(image.content).getpixel((0, 0)) == (255, 255, 255)
    palette = Picture.new("P", (2, 2), 0)
    assert pixels(image_from_bytes(encoded(palette, transparency=0)).content).getpixel((0, 0)) == (255, 255, 255)


def bomb(width: int, height: int) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    chunks = [struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize("content", [b"", b"no picture", bomb(60_000, 60_000), bomb(20_000, 6_000), bomb(10, 10)])
def test_what_is_no_picture_or_too_large_a_one_is_refused(content: bytes) -> None:
    with pytest.raises(IntegrityError, match=r"a\.png"):
        image_from_bytes(content, where="a.png")


def test_a_picture_has_a_side() -> None:
    with pytest.raises(UsageError):
        image_from_bytes(encoded(Picture.new("RGB", (1, 1))), longest=0)


def test_another_format_is_read() -> None:
    content = encoded(Picture.new("RGB", (30, 20), "green"), "WEBP", lossless=True)
    image = image_from_bytes(content, longest=15)
    assert (image.width, image.height, image.media_type) == (15, 10, "image/png")
