"""InceptionV3 as a function of its weights: the one that published FIDs were measured with, and torchvision's."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

__all__ = ["FEATURES", "Inception"]

SIDE = 299
FEATURES = 2048

EPSILON = 0.001
"""What the normalisation adds to a variance."""

Tensor: TypeAlias = Any
"""A torch tensor; planes are (n, channels, height, width)."""


@dataclass(frozen=True, slots=True)
class Inception:
    """The network; `ported` takes the pooling of TensorFlow's graph, whose weights published FIDs were made with.

    Attributes:
        state: tensors by the names that checkpoints give them.
        ported: whether they come from that graph; else they are torchvision's.
    """

    state: Mapping[str, Tensor]
    ported: bool

    @property
    def classes(self) -> int:
        """How many classes it tells apart."""
        return len(self.state["fc.bias"])

    def to(self, device: object) -> "Inception":
        """Bring the weights to a device."""
        return replace(self, state={name: tensor.to(device) for name, tensor in self.state.items()})

    def problem(self) -> str:
        """Say which tensor is missing or has another shape; empty when the network is whole. Nothing is computed."""
        torch = importlib.import_module("torch")
        try:
            shadow = self.to("meta")
            shadow.logits(shadow.features(torch.zeros(1, 3, SIDE, SIDE, device="meta")))
        except KeyError as error:
            return f"no tensor {error.args[0]}"
        except RuntimeError as error:
            return str(error).partition("\n")[0]
        return ""

    def features(self, pictures: Tensor) -> Tensor:
        """Give the pooled features, (n, 2048), of pictures (n, 3, 299, 299)."""
        planes = self.unit("Conv2d_1a_3x3", pictures, stride=2, padded=False)
        planes = self.unit("Conv2d_2b_3x3", self.unit("Conv2d_2a_3x3", planes, padded=False))
        planes = self.unit("Conv2d_3b_1x1", halved(planes))
        planes = halved(self.unit("Conv2d_4a_3x3", planes, padded=False))
        for name in ("Mixed_5b", "Mixed_5c", "Mixed_5d"):
            planes = self.block_a(name, planes)
        planes = self.block_b("Mixed_6a", planes)
        for name in ("Mixed_6b", "Mixed_6c", "Mixed_6d", "Mixed_6e"):
            planes = self.block_c(name, planes)
        planes = self.block_d("Mixed_7a", planes)
        planes = self.block_e("Mixed_7b", planes, largest=False)
        return self.block_e("Mixed_7c", planes, largest=self.ported).mean((2, 3))

    def logits(self, features: Tensor) -> Tensor:
        """Give a number per class; the published inception score leaves the bias of the ported ones out."""
        bias = None if self.ported else self.state["fc.bias"]
        return functional().linear(features, self.state["fc.weight"], bias)

    def unit(self, name: str, planes: Tensor, *, stride: int = 1, padded: bool = True) -> Tensor:
        """Convolve, normalise, and keep what is above zero; padded, a stride of one keeps the size."""
        weight = self.state[f"{name}.conv.weight"]
        padding = (weight.shape[2] // 2, weight.shape[3] // 2) if padded else 0
        planes = functional().conv2d(planes, weight, stride=stride, padding=padding)
        mean, variance = self.state[f"{name}.bn.running_mean"], self.state[f"{name}.bn.running_var"]
        scale, shift = self.state[f"{name}.bn.weight"], self.state[f"{name}.bn.bias"]
        return functional().relu(functional().batch_norm(planes, mean, variance, scale, shift, eps=EPSILON))

    def chain(self, name: str, planes: Tensor, count: int) -> Tensor:
        """Put units numbered from 1 behind one another."""
        for number in range(1, count + 1):
            planes = self.unit(f"{name}_{number}", planes)
        return planes

    def pooled(self, name: str, planes: Tensor, *, largest: bool = False) -> Tensor:
        """Pool over windows of three by three, then convolve.

        TensorFlow's mean counts only what lies within the picture, torchvision's counts its border too. In the
        published graph the last block takes the maximum, where the paper has the mean.
        """
        if largest:
            planes = functional().max_pool2d(planes, 3, stride=1, padding=1)
        else:
            planes = functional().avg_pool2d(planes, 3, stride=1, padding=1, count_include_pad=not self.ported)
        return self.unit(f"{name}.branch_pool", planes)

    def block_a(self, name: str, planes: Tensor) -> Tensor:
        """Look through windows of 1, of 5, and of 3 twice."""
        one = self.unit(f"{name}.branch1x1", planes)
        wide = self.chain(f"{name}.branch5x5", planes, 2)
        double = self.chain(f"{name}.branch3x3dbl", planes, 3)
        return side_by_side(one, wide, double, self.pooled(name, planes))

    def block_b(self, name: str, planes: Tensor) -> Tensor:
        """Halve the sides."""
        once = self.unit(f"{name}.branch3x3", planes, stride=2, padded=False)
        double = self.chain(f"{name}.branch3x3dbl", planes, 2)
        double = self.unit(f"{name}.branch3x3dbl_3", double, stride=2, padded=False)
        return side_by_side(once, double, halved(planes))

    def block_c(self, name: str, planes: Tensor) -> Tensor:
        """Look through windows of 7, each as a row and a column."""
        one = self.unit(f"{name}.branch1x1", planes)
        once = self.chain(f"{name}.branch7x7", planes, 3)
        twice = self.chain(f"{name}.branch7x7dbl", planes, 5)
        return side_by_side(one, once, twice, self.pooled(name, planes))

    def block_d(self, name: str, planes: Tensor) -> Tensor:
        """Halve the sides again."""
        small = self.unit(f"{name}.branch3x3_1", planes)
        small = self.unit(f"{name}.branch3x3_2", small, stride=2, padded=False)
        large = self.chain(f"{name}.branch7x7x3", planes, 3)
        large = self.unit(f"{name}.branch7x7x3_4", large, stride=2, padded=False)
        return side_by_side(small, large, halved(planes))

    def block_e(self, name: str, planes: Tensor, *, largest: bool) -> Tensor:
        """Look through rows and columns side by side."""
        one = self.unit(f"{name}.branch1x1", planes)
        once = self.unit(f"{name}.branch3x3_1", planes)
        twice = self.chain(f"{name}.branch3x3dbl", planes, 2)
        crossed = [self.unit(f"{name}.branch3x3_2{part}", once) for part in "ab"]
        crossed += [self.unit(f"{name}.branch3x3dbl_3{part}", twice) for part in "ab"]
        return side_by_side(one, *crossed, self.pooled(name, planes, largest=largest))


def functional() -> Any:  # noqa: ANN401 - a module
    """Give torch's functions."""
    return importlib.import_module("torch.nn.functional")


def halved(planes: Tensor) -> Tensor:
    """Keep the largest of every window of three by three, two apart."""
    return functional().max_pool2d(planes, 3, stride=2)


def side_by_side(*planes: Tensor) -> Tensor:
    """Join the channels of several."""
    return importlib.import_module("torch").cat(planes, 1)
