import errno
import os
import socket
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
from culturekit.core.pictures import picture_files
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
from tests.core.odd_pictures import KINDS, odd_picture, png_file, saved
from tests.effort import examples


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "images-too").mkdir()
    (tmp_path / "images-too" / "secret.png").write_bytes(b"secret")
    for name in ("a.png", "deep/b.png"):
        (folder / name).write_bytes(name.encode())
    return folder


def reason(root: Path, relative: str) -> str:
    found = picture_files.read_bytes_inside(root, relative)
    assert isinstance(found, picture_files.NoPicture), found
    return found.reason


@pytest.mark.parametrize("name", ["a.png", "deep/b.png", "./a.png", "deep//b.png"])
def test_what_lies_inside_is_read(root: Path, name: str) -> None:
    assert picture_files.read_bytes_inside(root, name) == os.path.normpath(name).encode()


@pytest.mark.parametrize("name", ["../secret.png", "deep/../../secret.png", "deep/../a.png", "..", "/etc/passwd"])
def test_a_path_that_climbs_or_is_absolute_is_outside(root: Path, name: str) -> None:
    assert reason(root, name) == picture_files.OUTSIDE
    assert reason(root, str(root / "a.png")) == picture_files.OUTSIDE


def test_a_link_is_followed_only_inside_and_a_folder_reached_through_one_is_a_root_like_any(root: Path) -> None:
    (root / "inside.png").symlink_to("deep/b.png")
    (root / "out.png").symlink_to(root.parent / "secret.png")
    (root / "beside.png").symlink_to("../images-too/secret.png")
    (root / "folder").symlink_to(root.parent)
    (root / "circle.png").symlink_to("circle.png")
    (root / "broken.png").symlink_to("nowhere.png")
    assert picture_files.read_bytes_inside(root, "inside.png") == b"deep/b.png"
    for name in ("out.png", "beside.png", "folder/secret.png", "folder"):
        assert reason(root, name) == picture_files.OUTSIDE
    assert reason(root, "circle.png") in {picture_files.IRREGULAR, picture_files.UNOPENED}
    assert reason(root, "broken.png") == picture_files.ABSENT
    (root.parent / "alias").symlink_to(root)
    assert picture_files.read_bytes_inside(root.parent / "alias", "a.png") == b"a.png"


def test_a_link_put_there_after_the_look_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "late.png").symlink_to(root.parent / "secret.png")
    (root / "deep2").symlink_to(root.parent)
    monkeypatch.setattr(os.path, "realpath", os.path.normpath)
    for name in ("late.png", "deep2/secret.png"):
        assert reason(root, name) in {picture_files.UNOPENED, picture_files.IRREGULAR, picture_files.ABSENT}


def test_what_is_no_regular_file_is_never_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe.png")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(root)
        listening.bind("socket.png")
        for name in ("pipe.png", "socket.png", "deep", ".", ""):
            assert reason(root, name) == picture_files.IRREGULAR
    assert reason(Path("/dev"), "null") == picture_files.IRREGULAR
    assert reason(root, "a.png/b.png") == picture_files.ABSENT


def test_a_pipe_that_takes_a_files_place_is_not_waited_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe.png")
    seen = (root / "a.png").stat()
    monkeypatch.setattr(os, "stat", lambda *_, **__: seen)
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(reason(root, "pipe.png")), daemon=True)
    thread.start()
    thread.join(600)
    assert found == [picture_files.IRREGULAR]


@pytest.mark.parametrize("name", ["a\0.png", "\ud800.png", "x" * 5000, "x" * 300 + ".png"])
def test_a_name_that_no_file_can_have_is_a_reason(root: Path, name: str) -> None:
    found = picture_files.read_bytes_inside(root, name)
    assert isinstance(found, picture_files.NoPicture)
    assert found.reason in {picture_files.UNOPENED, picture_files.ABSENT}
    found.detail.encode()


@pytest.mark.parametrize(
    "name",
    [
        "絵.png",
        "صورة.png",
        "å.png",
        "a\u030a.png",
        " .png",
        "new\nline.png",
        "\u202egnp.a",
        "a\\b",
        os.fsdecode(b"\xff\xfe.png"),
    ],
)
def test_names_in_any_script_are_read(root: Path, name: str) -> None:
    (root / name).write_bytes(b"here")
    assert picture_files.read_bytes_inside(root, name) == b"here"


def test_absent_empty_large_and_forbidden_have_their_reasons(root: Path) -> None:
    (root / "empty.png").touch()
    (root / "large.png").write_bytes(bytes(11))
    assert reason(root, "gone.png") == reason(root, os.fsdecode(b"\xff.png")) == picture_files.ABSENT
    assert reason(root / "gone", "a.png") == picture_files.ABSENT
    assert reason(root, "empty.png") == picture_files.EMPTY
    found = picture_files.read_bytes_inside(root, "large.png", limits=picture_files.PictureLimits(bytes=10))
    assert found == picture_files.NoPicture(picture_files.TOO_MANY_BYTES, "11 bytes, at most 10")
    if os.geteuid():
        (root / "a.png").chmod(0)
        assert reason(root, "a.png") == picture_files.UNOPENED


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.ENOMEM])
def test_a_lack_of_the_machine_is_no_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    (tmp_path / "a.png").write_bytes(b"picture")

    def refused(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(OSError, match=os.strerror(number)):
        picture_files.read_bytes_inside(tmp_path, "a.png")


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
