"""Headers of safetensors and the JSON of a model come from strangers."""

import json
import struct
from pathlib import Path

import pytest

from culturekit.core.digests import MANIFEST, read_manifest
from culturekit.core.errors import IntegrityError
from culturekit.core.model_files import check_safetensors, read_header, read_json

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
