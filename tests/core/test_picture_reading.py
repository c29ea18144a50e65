import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from culturekit.core.digests import digest_bytes
from culturekit.core.pictures.picture_files import (
    CHANGED,
    REASONS,
    TOO_COSTLY,
    TOO_MANY_BYTES,
    TOO_MANY_PIXELS,
    NoPicture,
    PictureLimits,
)
from culturekit.core.pictures.picture_reading import ReadPicture, picture_from, read_inside
from tests.core.hostile_pictures import HOSTILE, hostile_picture
from tests.core.odd_pictures import KINDS, odd_picture, saved
from tests.core.png_writing import png_file
from tests.effort import examples


def noise(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.random.default_rng(1).integers(0, 256, shape, np.uint8)


@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_picture_has_the_pixels_that_a_person_sees(kind: str) -> None:
    for seed in range(examples(20)):
        odd = odd_picture(kind, seed)
        found = picture_from(odd.content)
        assert isinstance(found, ReadPicture), found
        assert found.pixels.shape == odd.right.shape
        assert found.pixels.dtype == np.uint8
        assert np.abs(found.pixels.astype(int) - odd.right).max() <= odd.tolerance
        assert found.changed == odd.changed


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused_for_the_right_reason(kind: str) -> None:
    for seed in range(examples(20)):
        hostile = hostile_picture(kind, seed)
        found = picture_from(hostile.content)
        if isinstance(found, NoPicture):
            assert found.reason in hostile.reasons
        else:
            assert hostile.may_be_read


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(sorted(KINDS)), st.integers(0, 9), st.data())
def test_whatever_is_damaged_is_read_or_refused(kind: str, seed: int, data: st.DataObject) -> None:
    content = bytearray(odd_picture(kind, seed).content)
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=8)):
        content[at] = data.draw(st.integers(0, 255))
    found = picture_from(bytes(content[: data.draw(st.integers(0, len(content)))]))
    if isinstance(found, NoPicture):
        assert found.reason in REASONS
    else:
        assert found.pixels.ndim == 3
        assert found.pixels.flags.writeable


@settings(deadline=None, max_examples=60)
@given(
    st.binary(max_size=300), st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"II*\0", b"BM"])
)
def test_any_bytes_at_all_are_read_or_refused(tail: bytes, start: bytes) -> None:
    found = picture_from(start + tail)
    assert isinstance(found, ReadPicture) or found.reason in REASONS


@pytest.mark.parametrize(("limits", "reason"), [
    (PictureLimits(bytes=10), TOO_MANY_BYTES), (PictureLimits(pixels=11), TOO_MANY_PIXELS),
    (PictureLimits(memory=50), TOO_COSTLY), (PictureLimits(pixels=12), None),
])  # fmt: skip
def test_the_limits_hold(limits: PictureLimits, reason: str | None) -> None:
    found = picture_from(png_file(noise(3, 4, 3)), limits=limits)
    assert (found.reason if isinstance(found, NoPicture) else None) == reason


def test_a_picture_of_too_many_pixels_is_never_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(content: object) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr(
        "culturekit.core.pictures.picture_reading.DECODERS", dict.fromkeys(("GIF", "PNG", "WEBP"), opened)
    )
    for form in ("GIF", "PNG", "WEBP"):
        found = picture_from(saved(noise(9, 9), form), limits=PictureLimits(pixels=80))
        assert isinstance(found, NoPicture)
        assert found.reason == TOO_MANY_PIXELS


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_what_lies_beside_the_pixels_changes_nothing(form: str) -> None:
    picture = Image.fromarray(noise(20, 30, 3))
    how: dict[str, object] = {"icc_profile": b"a profile" * 99, "xmp": b"<x:xmpmeta/>"}
    bare, dressed = picture_from(saved(picture, form)), picture_from(saved(picture, form, **how))
    assert isinstance(bare, ReadPicture)
    assert isinstance(dressed, ReadPicture)
    assert np.array_equal(bare.pixels, dressed.pixels)
    assert bare.changed == dressed.changed == ()


def test_a_file_that_lies_about_its_kind_is_read_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(saved(noise(3, 3, 3), "PNG"))
    found = read_inside(tmp_path, "a.jpg")
    assert isinstance(found, ReadPicture)
    assert found.format == "PNG"


def test_the_formats_that_are_known_but_not_read_are_named() -> None:
    found = [picture_from(start + bytes(40)) for start in (b"\0\0\0 ftypavif", b"%PDF-1.7", b"<svg ")]
    assert [picture.detail for picture in found if isinstance(picture, NoPicture)] == ["AVIF", "PDF", "SVG"]


def test_a_file_is_the_one_that_is_expected(tmp_path: Path) -> None:
    content = saved(noise(3, 3, 3), "PNG")
    (tmp_path / "a.png").write_bytes(content)
    assert isinstance(read_inside(tmp_path, "a.png", sha256=digest_bytes(content)), ReadPicture)
    found = read_inside(tmp_path, "a.png", sha256=digest_bytes(b""))
    assert isinstance(found, NoPicture)
    assert found.reason == CHANGED


def test_several_threads_read_without_a_warning_and_leave_the_filters_as_they_were() -> None:
    contents = [odd_picture("tiff packed", seed).content for seed in range(8)]
    before, failed = list(warnings.filters), []

    def read(part: Callable[[bytes], object]) -> None:
        try:
            for content in contents * 5:
                part(content)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=read, args=(picture_from,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert list(warnings.filters) == before


def test_a_strip_boundary_leaves_no_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = noise(50, 7, 4)
    whole = picture_from(saved(pixels, "PNG"))
    monkeypatch.setattr("culturekit.core.pictures.picture_reading.STRIP_PIXELS", 20)
    strips = picture_from(saved(pixels, "PNG"))
    assert isinstance(whole, ReadPicture)
    assert isinstance(strips, ReadPicture)
    assert np.array_equal(whole.pixels, strips.pixels)
