import os
from pathlib import Path

import pytest

from culturekit.storage.atomic import clear_folder, remove_strays, write_atomically


def test_a_written_file_is_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", b"one")
    write_atomically(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["a"]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomically(tmp_path / "a", b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_strays_of_killed_writers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/.writing-17-part.parquet").write_bytes(b"half")
    (tmp_path / "deep/part.parquet").write_bytes(b"whole")
    remove_strays(tmp_path)
    assert os.listdir(tmp_path / "deep") == ["part.parquet"]


def test_a_cleared_folder_is_empty(tmp_path: Path) -> None:
    (tmp_path / "x/y").mkdir(parents=True)
    clear_folder(tmp_path / "x")
    assert os.listdir(tmp_path / "x") == []
