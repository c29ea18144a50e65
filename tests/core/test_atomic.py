"""Files are written whole, and known by their content; what is kept in a process is kept while they stay."""

import hashlib
import json
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.atomic import clear_folder, remove_strays, write_atomically
from culturekit.core.digests import (
    MANIFEST,
    MANY,
    InputRecord,
    Manifest,
    canonical_json,
    describe_outputs,
    digest,
    digest_bytes,
    digest_file,
    digest_tree,
    once_per_state,
    read_manifest,
    state_of,
)
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.model_files import check_safetensors, read_header, read_json
from culturekit.core.registry import Entry, Registry


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


def test_a_file_is_read_once_in_each_state(tmp_path: Path) -> None:
    file, reads = tmp_path / "words.txt", []

    @once_per_state
    def read(path: Path) -> str:
        reads.append(path)
        return path.read_text(encoding="utf-8")

    for text in ("one", "one", "two!", "six"):
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
        assert (read(file), read(file)) == (text, text)
    assert len(reads) == 3


def test_the_same_relative_name_in_another_folder_is_another_file(tmp_path: Path) -> None:
    states = []
    here = Path.cwd()
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text("same", encoding="utf-8")
        os.chdir(tmp_path / name)
        states.append(state_of(Path("x")))
    os.chdir(here)
    assert states[0] != states[1]


def test_a_folder_is_another_when_a_file_in_it_is(tmp_path: Path) -> None:
    (tmp_path / "unet").mkdir()
    weights = tmp_path / "unet/weights.safetensors"
    weights.write_bytes(b"1")
    first = state_of(tmp_path)
    assert state_of(tmp_path) == first
    weights.write_bytes(b"22")
    assert state_of(tmp_path) != first


def test_a_folder_of_very_many_files_is_not_walked(tmp_path: Path) -> None:
    for number in range(MANY + 1):
        (tmp_path / f"{number}.png").touch()
    assert len(state_of(tmp_path)) == 1


@given(st.text())
def test_a_target_that_is_no_file_has_no_state(target: str) -> None:
    assert state_of(Path(f"no/such/folder/{target}")) == state_of(Path("no/such\0"))


def test_what_a_spec_names_is_made_anew_when_its_files_are_others(tmp_path: Path) -> None:
    things: Registry[list[str]] = Registry("thing", [Entry("list", "builtins:list", "")])
    calls = []
    things.make = lambda spec, **_: calls.append(str(spec)) or [str(spec)]  # type: ignore[method-assign,func-returns-value]
    weights = tmp_path / "weights"
    weights.write_bytes(b"1")
    spec = f"list:{weights}?other=5"
    first = things.kept(spec)
    assert things.kept(spec) is first
    assert things.kept("list:elsewhere") is not first
    weights.write_bytes(b"22")
    assert things.kept(spec) is not first
    assert len(calls) == 3


DEEP = 100_000


def written(path: Path, header: bytes, data: bytes = b"") -> Path:
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


GOOD = {"__metadata__": {"a": "b"}, "x": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}}


def test_a_header_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "good.safetensors", json.dumps(GOOD).encode(), bytes(8))
    check_safetensors([path])
    header = read_header(path)
    assert (header.notes, header.tensors["x"].shape) == ({"a": "b"}, (2, 1))


@pytest.mark.parametrize("header", [
    b"[" * DEEP, b'{"a":' * DEEP, b'{"x":' + b"[" * DEEP + b"]" * DEEP + b"}",
    b'{"__metadata__":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}", b'{"__metadata__": {"a": 1}}',
    b'{"x": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]}}',
    b'{"x": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}', b'{"x": 3}',
])  # fmt: skip
def test_a_header_that_is_none_is_said_at_once(tmp_path: Path, header: bytes) -> None:
    path = written(tmp_path / "bad.safetensors", header)
    with pytest.raises(IntegrityError, match="no safetensors file"):
        read_header(path)
    with pytest.raises(IntegrityError, match="no safetensors file"):
        check_safetensors([path])


def test_nested_json_is_damaged_and_no_mistake_of_ours(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"[" * DEEP)
    with pytest.raises(IntegrityError, match="cannot be read"):
        read_json(tmp_path / "config.json")
    (tmp_path / MANIFEST).write_bytes(b'{"options":' + b'{"a":' * DEEP)
    with pytest.raises(IntegrityError, match="manifest cannot be read"):
        read_manifest(tmp_path)
