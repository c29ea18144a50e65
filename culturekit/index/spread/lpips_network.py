"""LPIPS as a function of its weights: three networks, what is taken from each, and how two pictures are compared."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

__all__ = ["BACKBONES", "Backbone", "Lpips"]

Tensor: TypeAlias = Any
"""A torch tensor; planes are (n, channels, height, width)."""

Backbone: TypeAlias = Literal["alex", "vgg", "squeeze"]

SHIFT, SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)
"""What brings colours from -1 to 1 to the range that the networks were trained with."""

EPSILON = 1e-10
"""What the authors add to the length of a feature."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One step of a network: what it does, its number among the network's layers, and for convolutions how."""

    kind: Literal["conv", "pool", "fire"]
    number: int = 0
    stride: int = 1
    padding: int = 0
    taken: bool = False


def conv(number: int, *, stride: int = 1, padding: int = 1, taken: bool = False) -> Layer:
    """Convolve, and keep what is above zero."""
    return Layer("conv", number, stride, padding, taken)


POOL = Layer("pool")

BACKBONES: Mapping[Backbone, tuple[Layer, ...]] = {
    "alex": (
        conv(0, stride=4, padding=2, taken=True), POOL, conv(3, padding=2, taken=True), POOL, conv(6, taken=True),
        conv(8, taken=True), conv(10, taken=True),
    ),
    "vgg": (
        conv(0), conv(2, taken=True), POOL, conv(5), conv(7, taken=True), POOL, conv(10), conv(12),
        conv(14, taken=True), POOL, conv(17), conv(19), conv(21, taken=True), POOL, conv(24), conv(26),
        conv(28, taken=True),
    ),
    "squeeze": (
        conv(0, stride=2, padding=0, taken=True), POOL, Layer("fire", 3), Layer("fire", 4, taken=True), POOL,
        Layer("fire", 6), Layer("fire", 7, taken=True), POOL, *(Layer("fire", n, taken=True) for n in (9, 10, 11, 12)),
    ),
}  # fmt: skip
"""The convolutions of AlexNet, VGG-16 and SqueezeNet 1.1 in order, up to the last one whose answer is taken."""

WINDOW: Mapping[Backbone, int] = {"alex": 3, "vgg": 2, "squeeze": 3}
"""The side of the windows that are pooled, two apart; those of SqueezeNet reach over the edge."""


@dataclass(frozen=True, slots=True)
class Lpips:
    """The measure of Zhang et al. 2018, version 0.1.

    Attributes:
        backbone: which network looks at the pictures.
        layers: weights and biases of the network, by the number of the layer and what it is, such as `0.weight`.
        heads: of each layer taken, how much each channel weighs, (1, channels, 1, 1).
    """

    backbone: Backbone
    layers: Mapping[str, Tensor]
    heads: Sequence[Tensor]

    def to(self, device: object) -> "Lpips":
        """Bring the weights to a device."""
        layers = {name: tensor.to(device) for name, tensor in self.layers.items()}
        return replace(self, layers=layers, heads=[head.to(device) for head in self.heads])

    def problem(self) -> str:
        """Say which tensor is missing or has another shape; empty when all is whole. Nothing is computed."""
        torch = importlib.import_module("torch")
        try:
            shadow = self.to("meta")
            shadow.distances(torch.zeros(2, 3, 64, 64, device="meta"))
        except KeyError as error:
            return f"no tensor {error.args[0]} in the network"
        except (RuntimeError, ValueError) as error:
            return str(error).partition("\n")[0]
        return ""

    def distances(self, pictures: Tensor) -> Tensor:
        """Measure every two pictures of (n, 3, height, width), from -1 to 1: (n, n), zeros on the diagonal."""
        torch = importlib.import_module("torch")
        count = len(pictures)
        found = torch.zeros(count, count, dtype=torch.float64, device=pictures.device)
        for planes, head in zip(self.taken(pictures), self.heads, strict=True):
            unit = planes / (planes.square().sum(1, keepdim=True).sqrt() + EPSILON)
            for first in range(count - 1):
                apart = (unit[first + 1 :] - unit[first]).square()
                told = (apart * head).sum(1).mean((1, 2), dtype=torch.float64)
                found[first, first + 1 :] += told
                found[first + 1 :, first] += told
        return found

    def taken(self, pictures: Tensor) -> Iterator[Tensor]:
        """Give the answers of the layers that are compared, one after the other."""
        shift, scale = (pictures.new_tensor(numbers).view(1, 3, 1, 1) for numbers in (SHIFT, SCALE))
        planes = (pictures - shift) / scale
        for layer in BACKBONES[self.backbone]:
            planes = self.step(layer, planes)
            if layer.taken:
                yield planes

    def step(self, layer: Layer, planes: Tensor) -> Tensor:
        """Go one step on."""
        if layer.kind == "pool":
            window = WINDOW[self.backbone]
            over = self.backbone == "squeeze"
            return functional().max_pool2d(planes, window, stride=2, ceil_mode=over)
        if layer.kind == "conv":
            return self.convolved(f"{layer.number}", planes, stride=layer.stride, padding=layer.padding)
        squeezed = self.convolved(f"{layer.number}.squeeze", planes)
        torch = importlib.import_module("torch")
        small = self.convolved(f"{layer.number}.expand1x1", squeezed)
        return torch.cat([small, self.convolved(f"{layer.number}.expand3x3", squeezed, padding=1)], 1)

    def convolved(self, name: str, planes: Tensor, *, stride: int = 1, padding: int = 0) -> Tensor:
        """Convolve, and keep what is above zero."""
        weight, bias = self.layers[f"{name}.weight"], self.layers[f"{name}.bias"]
        return functional().relu(functional().conv2d(planes, weight, bias, stride=stride, padding=padding))


def functional() -> Any:  # noqa: ANN401 - a module
    """Import torch's functions."""
    return importlib.import_module("torch.nn.functional")
