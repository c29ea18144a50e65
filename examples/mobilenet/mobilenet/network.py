"""MobileNetV2 for one picture, in NumPy: convolutions whose normalisation is folded into them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from culturekit.extend import IntegrityError, check_safetensors, read_header

__all__ = ["BLOCKS", "DIM", "SIDE", "Network"]

SIDE, DIM = 224, 1280
SIX = np.float32(6)

BLOCKS = (
    (16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (32, 1), (64, 2), (64, 1), (64, 1), (64, 1),
    (96, 1), (96, 1), (96, 1), (160, 2), (160, 1), (160, 1), (320, 1),
)  # fmt: skip
"""How wide is what a block gives, and its stride."""

Planes = NDArray[np.float32]
"""float32 (height, width, channels)."""


@dataclass(frozen=True, slots=True)
class Network:
    """Kernels (height, width, in, out) and biases by the name of their layer."""

    tensors: Mapping[str, NDArray[np.float32]]

    @classmethod
    def load(cls, path: Path) -> "Network":
        """Read a safetensors file."""
        check_safetensors([path])
        content, header = path.read_bytes(), read_header(path)
        begin = header.promised - max(entry.data_offsets[1] for entry in header.tensors.values())
        tensors = {}
        for name, entry in header.tensors.items():
            first, last = (begin + place for place in entry.data_offsets)
            tensors[name] = np.frombuffer(content[first:last], "<f4").reshape(entry.shape)
        layers = ["Conv1", "Conv_1", *(name for number, _ in enumerate(BLOCKS) for name in layers_of(number))]
        missing = sorted({f"{name}.{part}" for name in layers for part in ("weight", "bias")} - tensors.keys())
        if missing:
            raise IntegrityError("the weights of MobileNetV2 are not complete", where=str(path),
                                 found=f"no {missing[0]}, and {len(missing) - 1} others")  # fmt: skip
        return cls(tensors)

    def features(self, picture: Planes) -> NDArray[np.float32]:
        """Give the mean of the last planes, float32 (1280,), of a picture of 224 x 224 from 0 to 1."""
        planes = self.convolved(picture, "Conv1")
        for number, (width, stride) in enumerate(BLOCKS):
            *expand, depthwise, project = layers_of(number)
            inner = self.mixed(planes, expand[0]) if expand else planes
            given = self.mixed(self.looked_about(inner, depthwise, stride), project, cut=False)
            planes = planes + given if stride == 1 and planes.shape[2] == width else given
        mean: NDArray[np.float32] = self.mixed(planes, "Conv_1").mean(axis=(0, 1))
        return mean

    def mixed(self, planes: Planes, name: str, *, cut: bool = True) -> Planes:
        """Mix the channels of each place, and cut at zero and six."""
        kernel = self.tensors[f"{name}.weight"][0, 0]
        found = planes.reshape(-1, kernel.shape[0]) @ kernel + self.tensors[f"{name}.bias"]
        found = found.reshape(*planes.shape[:2], -1)
        return cut_off(found) if cut else found

    def looked_about(self, planes: Planes, name: str, stride: int) -> Planes:
        """Let each channel look at the nine places about each place."""
        kernel = self.tensors[f"{name}.weight"][:, :, :, 0]
        found = sum(part * kernel[row, column] for row, column, part in nine(planes, stride))
        return cut_off(found + self.tensors[f"{name}.bias"])

    def convolved(self, picture: Planes, name: str) -> Planes:
        """Look at the nine places about every other place, all channels together."""
        kernel = self.tensors[f"{name}.weight"]
        found = sum(part @ kernel[row, column] for row, column, part in nine(picture, 2))
        return cut_off(found + self.tensors[f"{name}.bias"])


def cut_off(planes: Planes) -> Planes:
    """Cut at zero and six."""
    cut: Planes = np.clip(planes, 0, SIX, out=planes)
    return cut


def layers_of(block: int) -> tuple[str, ...]:
    """Name the layers of a block; the first does not widen."""
    if not block:
        return "expanded_conv_depthwise", "expanded_conv_project"
    return tuple(f"block_{block}_{kind}" for kind in ("expand", "depthwise", "project"))


def nine(planes: Planes, stride: int) -> list[tuple[int, int, Planes]]:
    """Give the planes shifted to the nine places of a window; with a stride of two the edge is below and right."""
    edge = (1, 1) if stride == 1 else (0, 1)
    padded = np.pad(planes, (edge, edge, (0, 0)))
    height, width = planes.shape[0] // stride, planes.shape[1] // stride
    return [
        (row, column, padded[row : row + stride * height : stride, column : column + stride * width : stride])
        for row in range(3) for column in range(3)
    ]  # fmt: skip
