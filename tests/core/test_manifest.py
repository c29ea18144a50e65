import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.digests import MANIFEST, InputRecord, Manifest, describe_outputs, read_manifest
from culturekit.core.errors import IntegrityError


def manifest(folder: Path) -> Manifest:
    content, outputs = describe_outputs(folder, {"a.parquet": 7})
    return Manifest(
        stage="test", version=1, key="k", sha256=content, code={"culturekit": "0"}, packages={},
        inputs={"graph": InputRecord("f" * 64, "graph", stage="ingest")}, options={"hops": 4, "name": None},
        seeds={"draw": 1}, counts={"a": 7}, drops={"because": 2}, outputs=outputs,
    )  # fmt: skip


def test_a_manifest_reads_back_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"x")
    (tmp_path / "files").mkdir()
    (tmp_path / "files/1.png").write_bytes(b"yy")
    written = manifest(tmp_path)
    (tmp_path / MANIFEST).write_bytes(written.encode())
    assert read_manifest(tmp_path) == written
    assert written.outputs["a.parquet"].rows == 7
    assert written.outputs["files"].files == 1


def test_the_manifest_the_run_record_and_the_journal_are_outside_the_content_hash(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    before = describe_outputs(tmp_path, {})
    (tmp_path / "manifest.json").write_bytes(b"{}")
    (tmp_path / "run.json").write_bytes(b"{}")
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal/replies.sqlite").write_bytes(b"paid")
    assert describe_outputs(tmp_path, {}) == before


def test_a_folder_without_a_manifest_is_not_finished(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) is None
    assert read_manifest(tmp_path / "nowhere") is None


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "a/b", "..", ""])
def test_an_output_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_bytes(b"x")
    tampered = json.loads(manifest(tmp_path).encode())
    tampered["outputs"] = {name: tampered["outputs"]["a"]}
    (tmp_path / MANIFEST).write_text(json.dumps(tampered), encoding="utf-8")
    with pytest.raises(IntegrityError, match="outside its folder"):
        read_manifest(tmp_path)


@given(content=st.binary(max_size=60))
def test_any_bytes_give_a_manifest_or_are_damaged(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(IntegrityError, match="cannot be read"):
        read_manifest(folder)
