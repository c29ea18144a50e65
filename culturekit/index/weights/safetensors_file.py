"""The safetensors format, written by hand: equal tensors and notes give equal bytes."""

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from culturekit.storage.atomic import whole_file

__all__ = ["StoredTensor", "write_tensors"]

ALIGNMENT = 8
"""Tensor data begins at a multiple of this many bytes."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor to be written: the format's name of its type, its shape, and who gives its little-endian bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int
    content: Callable[[], bytes | memoryview]


def write_tensors(path: Path, tensors: Sequence[StoredTensor], notes: Mapping[str, str]) -> None:
    """Write tensors in the order of their names, one in memory at a time; the file is there whole or not at all."""
    ordered = sorted(tensors, key=lambda tensor: (-width(tensor), tensor.name))
    header: dict[str, object] = {"__metadata__": dict(sorted(notes.items()))}
    place = 0
    for tensor in ordered:
        header[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [place, place + tensor.size],
        }
        place += tensor.size
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    with whole_file(path) as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for tensor in ordered:
            file.write(tensor.content())


def width(tensor: StoredTensor) -> int:
    """Give the bytes of one number: the widest come first, so that all stay aligned."""
    numbers = 1
    for side in tensor.shape:
        numbers *= side
    return tensor.size // numbers if numbers else 0
