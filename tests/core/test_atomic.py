import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.atomic import clear_folder, remove_strays, write_atomically
from culturekit.core.digests import canonical_json, digest, digest_bytes, digest_file, digest_tree
from culturekit.core.errors import UsageError


@given(st.dictionaries(st.text(max_size=5), st.integers(-(2**53), 2**53), max_size=6))
def test_equal_values_have_one_form_whatever_the_order(value: dict[str, int]) -> None:
    turned = dict(reversed(list(value.items())))
    assert canonical_json(value) == canonical_json(turned)
    assert digest(value) == digest(turned)


def test_the_form_is_the_documented_one_and_a_file_hashes_like_its_bytes(tmp_path: Path) -> None:
    assert canonical_json({"b": [1, None], "a": "ü"}) == '{"a":"ü","b":[1,null]}'.encode()
    with pytest.raises(UsageError, match="a number is too large; expected below 2"):
        canonical_json({"seed": 10**20})
    large = b"x" * 3_000_000
    (tmp_path / "f").write_bytes(large)
    assert digest_bytes(large) == digest_file(tmp_path / "f") == hashlib.sha256(large).hexdigest()


def test_a_tree_hash_sees_names_and_content(tmp_path: Path) -> None:
    for name, content in (("a/1", b"x"), ("b/2", b"yy")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    before = digest_tree(tmp_path)
    assert before[1:] == (2, 3)
    (tmp_path / "b/2").rename(tmp_path / "b/3")
    renamed = digest_tree(tmp_path)
    assert renamed[0] != before[0]
    (tmp_path / "b/3").write_bytes(b"zz")
    assert digest_tree(tmp_path)[0] not in {before[0], renamed[0]}


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


def test_strays_of_killed_writers_are_removed_and_nothing_else_until_a_folder_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "x/deep").mkdir(parents=True)
    (tmp_path / "x/deep/.writing-17-part.parquet").write_bytes(b"half")
    (tmp_path / "x/deep/part.parquet").write_bytes(b"whole")
    remove_strays(tmp_path)
    assert os.listdir(tmp_path / "x/deep") == ["part.parquet"]
    clear_folder(tmp_path / "x")
    assert os.listdir(tmp_path / "x") == []
