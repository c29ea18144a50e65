"""InceptionV3 as a network: the one that published FIDs were measured with, and torchvision's."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["FEATURES", "SIDE", "Inception", "inception_with"]

SIDE = 299
"""Pixels along each side of what the network looks at."""

FEATURES = 2048


class Unit(nn.Module):
    """A convolution, its normalisation, and the part above zero."""

    def __init__(
        self, channels: int, out: int, size: int | tuple[int, int], *, stride: int = 1, padded: bool = True
    ) -> None:
        """Pad so that a stride of one keeps the size, unless told otherwise."""
        super().__init__()
        rows, columns = (size, size) if isinstance(size, int) else size
        padding = (rows // 2, columns // 2) if padded else 0
        self.conv = nn.Conv2d(channels, out, (rows, columns), stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(out, eps=0.001)

    def forward(self, planes: Tensor) -> Tensor:
        """Convolve."""
        return functional.relu(self.bn(self.conv(planes)), inplace=True)


class Block(nn.Module):
    """A block with a pooled branch; `ported` says whether the weights come from TensorFlow."""

    def __init__(self, *, ported: bool, largest: bool = False) -> None:
        """Decide how the pooled branch pools."""
        super().__init__()
        self.ported = ported
        self.largest = largest and ported

    def pooled(self, planes: Tensor) -> Tensor:
        """Pool over windows of three by three.

        In the published graph the last block takes the maximum, where the paper has the mean; its weights
        were trained so.
        """
        if self.largest:
            return functional.max_pool2d(planes, 3, stride=1, padding=1)
        return functional.avg_pool2d(planes, 3, stride=1, padding=1, count_include_pad=not self.ported)


class BlockA(Block):
    """Windows of 5 x 5, 3 x 3 twice, and pooled."""

    def __init__(self, channels: int, pool: int, *, ported: bool) -> None:
        """Take the channels that come in, and those of the pooled branch."""
        super().__init__(ported=ported)
        self.branch1x1 = Unit(channels, 64, 1)
        self.branch5x5_1 = Unit(channels, 48, 1)
        self.branch5x5_2 = Unit(48, 64, 5)
        self.branch3x3dbl_1 = Unit(channels, 64, 1)
        self.branch3x3dbl_2 = Unit(64, 96, 3)
        self.branch3x3dbl_3 = Unit(96, 96, 3)
        self.branch_pool = Unit(channels, pool, 1)

    def forward(self, planes: Tensor) -> Tensor:
        """Put the branches side by side."""
        wide = self.branch5x5_2(self.branch5x5_1(planes))
        double = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(planes)))
        return torch.cat([self.branch1x1(planes), wide, double, self.branch_pool(self.pooled(planes))], 1)


class BlockB(nn.Module):
    """Halves the sides."""

    def __init__(self, channels: int) -> None:
        """Take the channels that come in."""
        super().__init__()
        self.branch3x3 = Unit(channels, 384, 3, stride=2, padded=False)
        self.branch3x3dbl_1 = Unit(channels, 64, 1)
        self.branch3x3dbl_2 = Unit(64, 96, 3)
        self.branch3x3dbl_3 = Unit(96, 96, 3, stride=2, padded=False)

    def forward(self, planes: Tensor) -> Tensor:
        """Put the branches side by side."""
        double = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(planes)))
        return torch.cat([self.branch3x3(planes), double, functional.max_pool2d(planes, 3, stride=2)], 1)


class BlockC(Block):
    """Windows of 7 x 7, each as a row and a column."""

    def __init__(self, channels: int, inner: int, *, ported: bool) -> None:
        """Take the channels that come in, and those between."""
        super().__init__(ported=ported)
        self.branch1x1 = Unit(channels, 192, 1)
        self.branch7x7_1 = Unit(channels, inner, 1)
        self.branch7x7_2 = Unit(inner, inner, (1, 7))
        self.branch7x7_3 = Unit(inner, 192, (7, 1))
        self.branch7x7dbl_1 = Unit(channels, inner, 1)
        self.branch7x7dbl_2 = Unit(inner, inner, (7, 1))
        self.branch7x7dbl_3 = Unit(inner, inner, (1, 7))
        self.branch7x7dbl_4 = Unit(inner, inner, (7, 1))
        self.branch7x7dbl_5 = Unit(inner, 192, (1, 7))
        self.branch_pool = Unit(channels, 192, 1)

    def forward(self, planes: Tensor) -> Tensor:
        """Put the branches side by side."""
        once = self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(planes)))
        twice = self.branch7x7dbl_3(self.branch7x7dbl_2(self.branch7x7dbl_1(planes)))
        twice = self.branch7x7dbl_5(self.branch7x7dbl_4(twice))
        return torch.cat([self.branch1x1(planes), once, twice, self.branch_pool(self.pooled(planes))], 1)


class BlockD(nn.Module):
    """Halves the sides again."""

    def __init__(self, channels: int) -> None:
        """Take the channels that come in."""
        super().__init__()
        self.branch3x3_1 = Unit(channels, 192, 1)
        self.branch3x3_2 = Unit(192, 320, 3, stride=2, padded=False)
        self.branch7x7x3_1 = Unit(channels, 192, 1)
        self.branch7x7x3_2 = Unit(192, 192, (1, 7))
        self.branch7x7x3_3 = Unit(192, 192, (7, 1))
        self.branch7x7x3_4 = Unit(192, 192, 3, stride=2, padded=False)

    def forward(self, planes: Tensor) -> Tensor:
        """Put the branches side by side."""
        small = self.branch3x3_2(self.branch3x3_1(planes))
        large = self.branch7x7x3_4(self.branch7x7x3_3(self.branch7x7x3_2(self.branch7x7x3_1(planes))))
        return torch.cat([small, large, functional.max_pool2d(planes, 3, stride=2)], 1)


class BlockE(Block):
    """Rows and columns side by side."""

    def __init__(self, channels: int, *, ported: bool, largest: bool) -> None:
        """Take the channels that come in."""
        super().__init__(ported=ported, largest=largest)
        self.branch1x1 = Unit(channels, 320, 1)
        self.branch3x3_1 = Unit(channels, 384, 1)
        self.branch3x3_2a = Unit(384, 384, (1, 3))
        self.branch3x3_2b = Unit(384, 384, (3, 1))
        self.branch3x3dbl_1 = Unit(channels, 448, 1)
        self.branch3x3dbl_2 = Unit(448, 384, 3)
        self.branch3x3dbl_3a = Unit(384, 384, (1, 3))
        self.branch3x3dbl_3b = Unit(384, 384, (3, 1))
        self.branch_pool = Unit(channels, 192, 1)

    def forward(self, planes: Tensor) -> Tensor:
        """Put the branches side by side."""
        once = self.branch3x3_1(planes)
        twice = self.branch3x3dbl_2(self.branch3x3dbl_1(planes))
        return torch.cat(
            [
                self.branch1x1(planes),
                self.branch3x3_2a(once),
                self.branch3x3_2b(once),
                self.branch3x3dbl_3a(twice),
                self.branch3x3dbl_3b(twice),
                self.branch_pool(self.pooled(planes)),
            ],
            1,
        )


class Inception(nn.Module):
    """The whole network; `ported` takes the pooling of the graph that published FIDs were measured with."""

    def __init__(self, *, ported: bool, classes: int) -> None:
        """Lay the blocks out under the names that checkpoints give them."""
        super().__init__()
        self.Conv2d_1a_3x3 = Unit(3, 32, 3, stride=2, padded=False)
        self.Conv2d_2a_3x3 = Unit(32, 32, 3, padded=False)
        self.Conv2d_2b_3x3 = Unit(32, 64, 3)
        self.Conv2d_3b_1x1 = Unit(64, 80, 1)
        self.Conv2d_4a_3x3 = Unit(80, 192, 3, padded=False)
        self.Mixed_5b = BlockA(192, 32, ported=ported)
        self.Mixed_5c = BlockA(256, 64, ported=ported)
        self.Mixed_5d = BlockA(288, 64, ported=ported)
        self.Mixed_6a = BlockB(288)
        self.Mixed_6b = BlockC(768, 128, ported=ported)
        self.Mixed_6c = BlockC(768, 160, ported=ported)
        self.Mixed_6d = BlockC(768, 160, ported=ported)
        self.Mixed_6e = BlockC(768, 192, ported=ported)
        self.Mixed_7a = BlockD(768)
        self.Mixed_7b = BlockE(1280, ported=ported, largest=False)
        self.Mixed_7c = BlockE(2048, ported=ported, largest=True)
        self.fc = nn.Linear(FEATURES, classes)

    def forward(self, pictures: Tensor) -> Tensor:
        """Give the pooled features, (n, 2048), of pictures (n, 3, 299, 299)."""
        planes = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(pictures)))
        planes = functional.max_pool2d(planes, 3, stride=2)
        planes = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(planes))
        planes = functional.max_pool2d(planes, 3, stride=2)
        planes = self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(planes)))
        planes = self.Mixed_6c(self.Mixed_6b(self.Mixed_6a(planes)))
        planes = self.Mixed_6e(self.Mixed_6d(planes))
        planes = self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(planes)))
        return planes.mean((2, 3))


def inception_with(state: Mapping[str, Any], *, ported: bool) -> Inception:
    """Make the network with these weights; what only training needs is left out of them."""
    network = Inception(ported=ported, classes=len(state["fc.bias"]))
    counters = {name: value for name, value in network.state_dict().items() if name.endswith("num_batches_tracked")}
    network.load_state_dict({**counters, **{n: t for n, t in state.items() if not n.startswith("AuxLogits.")}})
    network.eval().requires_grad_(requires_grad=False)
    return network
