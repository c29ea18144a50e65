"""Weights in a folder: what is read, what is refused, and what the hash depends on."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.errors import CultureKitError, IntegrityError, UsageError
from culturekit.core.model_files import check_safetensors
from culturekit.index.weights import ModelFolder, find_model, weight_files


def safetensors(values: bytes, **changed: Any) -> bytes:
    header = {"w": {"dtype": "U8", "shape": [len(values)], "data_offsets": [0, len(values)]} | changed}
    written = json.dumps(header).encode()
    return struct.pack("<Q", len(written)) + written + values


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    (tmp_path / "config.json").write_text('{"model_type": "clip"}')
    (tmp_path / "model.safetensors").write_bytes(safetensors(b"weights"))
    (tmp_path / "tokenizer.json").write_text("{}")
    return ModelFolder(tmp_path, "local")


def test_the_hash_is_of_names_and_bytes_of_what_decides(folder: ModelFolder) -> None:
    before = folder.digest()
    for name in ("README.md", "training_args.json", "model.fp16.safetensors", "pytorch_model.bin", "optimizer.pt"):
        (folder.path / name).write_bytes(b"changes nothing")
        assert folder.digest() == before, name
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        content = (folder.path / name).read_bytes()
        (folder.path / name).write_bytes(content + b" ")
        assert folder.digest() != before, name
        (folder.path / name).write_bytes(content)
        assert folder.digest() == before, name
    (folder.path / "merges.txt").write_text("a b")
    assert folder.digest() != before
    (folder.path / "merges.txt").rename(folder.path / "vocab.txt")
    assert folder.digest() != before


def test_a_pickle_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    for name in ("pytorch_model.bin", "weights.pt", "weights.pth", "last.ckpt"):
        location = tmp_path / name.replace(".", "-")
        location.mkdir()
        (location / name).write_bytes(b"\x80\x02.")
        with pytest.raises(UsageError, match=rf"pickle.*culturekit weights convert .*{name} --sha256"):
            weight_files(location)
        (location / "model.safetensors").write_bytes(safetensors(b"w"))
        assert [path.name for path in weight_files(location)] == ["model.safetensors"]


def test_shards_are_those_that_the_index_names(tmp_path: Path) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}))
    (tmp_path / "one.safetensors").write_bytes(safetensors(b"1"))
    with pytest.raises(IntegrityError, match=r"part of the weights is missing; expected two\.safetensors"):
        weight_files(tmp_path)
    (tmp_path / "two.safetensors").write_bytes(safetensors(b"2"))
    (tmp_path / "other.safetensors").write_bytes(safetensors(b"3"))
    assert [path.name for path in weight_files(tmp_path)] == ["one.safetensors", "two.safetensors"]
    for outside in ("../one.safetensors", "/one.safetensors", "one.bin"):
        index.write_text(json.dumps({"weight_map": {"a": outside}}))
        with pytest.raises(IntegrityError, match="no safetensors file beside it"):
            weight_files(tmp_path)
    with pytest.raises(UsageError, match=r"no weights in this folder; expected model\.safetensors"):
        weight_files(tmp_path.parent)


def test_every_cut_of_a_safetensors_file_is_noticed(tmp_path: Path) -> None:
    whole, path = safetensors(b"0123456789" * 9), tmp_path / "model.safetensors"
    path.write_bytes(whole)
    check_safetensors([path])
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(IntegrityError):
            check_safetensors([path])
    path.write_bytes(whole + b"more")
    with pytest.raises(IntegrityError, match="cut or changed"):
        check_safetensors([path])


@given(st.binary(max_size=200))
def test_any_bytes_are_safetensors_or_are_refused(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.mktemp("noise") / "model.safetensors"
    path.write_bytes(noise)
    with pytest.raises(CultureKitError):
        check_safetensors([path])
    path.write_bytes(struct.pack("<Q", len(noise)) + noise)
    with pytest.raises(CultureKitError):
        check_safetensors([path])


def test_what_is_no_folder_and_no_hub_id_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    for target in ("", str(tmp_path / "file"), str(tmp_path / "absent"), "a/b/c", "../up"):
        with pytest.raises(UsageError, match="not a folder with a model in it"):
            find_model(target, kind="transformers")
    with pytest.raises(UsageError, match="only a hub id has revisions"):
        find_model(str(tmp_path), revision="main", kind="transformers")
    assert find_model(str(tmp_path), kind="transformers").revision == "local"


def cached(cache: Path, name: str, commit: str) -> Path:
    """Lay a model into a cache of the hub, as the hub's own client would."""
    location = cache / f"models--{name.replace('/', '--')}"
    (location / "refs").mkdir(parents=True)
    (location / "refs/main").write_text(commit)
    snapshot = location / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_bytes(safetensors(b"w"))
    return snapshot


def test_a_hub_id_is_found_in_the_cache_and_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub_constants: Any = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(hub_constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(hub_constants, "HF_HUB_OFFLINE", True)
    commit = "0123456789abcdef0123456789abcdef01234567"
    snapshot = cached(tmp_path, "owner/name", commit)
    assert find_model("owner/name", kind="transformers") == ModelFolder(snapshot, commit)
    assert find_model("owner/name", revision="main", kind="transformers").revision == commit
    assert find_model("owner/name", revision=commit, kind="transformers").path == snapshot
    for name, revision in (("owner/other", ""), ("owner/name", "absent")):
        with pytest.raises(UsageError, match="hub is switched off"):
            find_model(name, revision=revision, kind="transformers")
