import errno
import os
import socket
import threading
from pathlib import Path

import pytest

from culturekit.core.pictures import picture_files


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
    "name", ["絵.png", "صورة.png", "å.png", "a\u030a.png", " .png", "new\nline.png", "\u202egnp.a", "a\\b"]
)
def test_names_in_any_script_are_read(root: Path, name: str) -> None:
    (root / name).write_bytes(b"here")
    assert picture_files.read_bytes_inside(root, name) == b"here"


def test_names_that_are_no_text_are_read(root: Path) -> None:
    (root / os.fsdecode(b"\xff\xfe.png")).write_bytes(b"here")
    assert picture_files.read_bytes_inside(root, os.fsdecode(b"\xff\xfe.png")) == b"here"
    assert reason(root, os.fsdecode(b"\xff.png")) == picture_files.ABSENT


def test_absent_empty_large_and_forbidden_have_their_reasons(root: Path) -> None:
    (root / "empty.png").touch()
    (root / "large.png").write_bytes(bytes(11))
    assert reason(root, "gone.png") == picture_files.ABSENT
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
