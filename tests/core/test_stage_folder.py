import os
from pathlib import Path

import pytest

from culturekit.core.digests import MANIFEST, Manifest, describe_outputs, read_manifest
from culturekit.core.errors import UsageError
from culturekit.core.stage import Staging, staging


def finish(staged: Staging, key: str, content: bytes, *, stage: str = "test") -> None:
    staged.open(key)
    (staged.out / "data").write_bytes(content)
    digest, outputs = describe_outputs(staged.out, {})
    staged.publish(
        Manifest(stage=stage, version=1, key=key, sha256=digest, code={}, packages={}, inputs={}, options={}, seeds={},
            counts={}, drops={}, outputs=outputs), b"{}",
    )  # fmt: skip


def test_a_new_result_replaces_the_old_one_whole_and_the_old_one_stays_until_then(tmp_path: Path) -> None:
    for key, content in (("k1", b"one"), ("k2", b"two")):
        with staging(tmp_path / "s", stage="test") as staged:
            finish(staged, key, content)
        assert (tmp_path / "s/data").read_bytes() == content
        assert os.listdir(tmp_path) == ["s"]
        assert sorted(os.listdir(tmp_path / "s")) == ["data", "manifest.json", "run.json"]
    with pytest.raises(OSError, match="disk full"), staging(tmp_path / "s", stage="test") as staged:
        staged.open("k3")
        (staged.out / "data").write_bytes(b"thr")
        raise OSError("disk full")
    assert (tmp_path / "s/data").read_bytes() == b"two"
    assert read_manifest(tmp_path / "s") is not None


def test_a_cut_run_goes_on_with_the_same_key_and_only_then(tmp_path: Path) -> None:
    staged = Staging(tmp_path / "s", stage="test")
    assert not staged.open("k1")
    (staged.scratch / "shard").write_bytes(b"done")
    for name in (".writing-1-x", MANIFEST):
        (staged.out / name).write_bytes(b"half")
    assert staged.open("k1")
    assert (staged.scratch / "shard").exists()
    assert os.listdir(staged.out) == []
    assert not staged.open("k2")
    assert os.listdir(staged.scratch) == []


@pytest.mark.parametrize("complete", [True, False])
def test_a_kill_between_the_two_renames_loses_nothing(tmp_path: Path, complete: bool) -> None:
    with staging(tmp_path / "s", stage="test") as staged:
        finish(staged, "k1", b"one")
    staged.open("k2")
    (staged.out / "data").write_bytes(b"two")
    if complete:
        (staged.out / MANIFEST).write_bytes((tmp_path / "s" / MANIFEST).read_bytes())
    (tmp_path / "s").rename(staged.previous)
    with staging(tmp_path / "s", stage="test"):
        assert (tmp_path / "s/data").read_bytes() == (b"two" if complete else b"one")
        assert not staged.previous.exists()


def test_what_is_no_result_of_the_stage_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s/thesis.tex").write_text("years of work", encoding="utf-8")
    with staging(tmp_path / "graph", stage="graph") as staged:
        finish(staged, "k1", b"one", stage="graph")
    (tmp_path / "file").write_bytes(b"")
    for name, words in (("s", "did not write"), ("graph", "another finished stage"), ("file", "a file of that name")):
        with pytest.raises(UsageError, match=words), staging(tmp_path / name, stage="test"):
            pass
    assert sorted(os.listdir(tmp_path)) == ["file", "graph", "s"]
