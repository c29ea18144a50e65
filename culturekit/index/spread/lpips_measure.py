"""LPIPS as a function of its weights, from local files: three networks, and how unlike two pictures look to them."""

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.digests import digest, digest_file
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.registry import Spec
from culturekit.core.torch_places import chosen_device, same_bits
from culturekit.index.encoder import Prepared
from culturekit.index.weights.known_weights import LPIPS, known_weights, loaded_tensors

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


SHORT: Mapping[str, Backbone] = {"AlexNet": "alex", "VGG-16": "vgg", "SqueezeNet": "squeeze"}
FULL: Mapping[Backbone, str] = {short: name for name, short in SHORT.items()}

HEAD = re.compile(r"lins?\.?(\d)\.model\.1\.weight")
LAYER = re.compile(r"(?:net\.slices?\.?\d|features)\.(\d+(?:\.(?:squeeze|expand1x1|expand3x3))?\.(?:weight|bias))")

LICENCE = (
    "published weights: heads BSD-2-Clause (PerceptualSimilarity), network BSD-3-Clause (torchvision), trained on "
    "ImageNet"
)
"""Whoever trained others knows theirs."""

SMALLEST = 32


@dataclass(frozen=True, slots=True)
class Options:
    """How the network is run.

    Attributes:
        backbone: file of the network's weights, where the first file holds the heads alone.
        side: to what square pictures are brought; 0 leaves them as they are.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
    """

    backbone: str = ""
    side: Annotated[int, msgspec.Meta(ge=0, le=4096)] = 256
    device: str = "auto"

    def __post_init__(self) -> None:
        """Refuse pictures that are too small for the networks."""
        if 0 < self.side < SMALLEST:
            raise ValueError(f"side is 0, or at least {SMALLEST} pixels, not {self.side}")


class LpipsMeasure:
    """The perceptual distance of Zhang et al. 2018 between the pictures of a batch."""

    caveat = (
        "LPIPS was trained on what people say of small distortions of one picture. Between different pictures it is "
        "large for anything that looks different: pose, colours, noise. It does not know what a picture shows."
    )
    licence = LICENCE

    def __init__(self, network: Lpips, weights: str, options: Options) -> None:
        """Take a network and the hash of its weights."""
        self.device = chosen_device(options.device)
        self.network = network.to(self.device)
        self.side = options.side
        self.name = f"lpips-{network.backbone}"
        size = f"resized to {self.side} x {self.side}, bilinear" if self.side else "size left as it is"
        self.parameters: Mapping[str, Any] = {
            "name": self.name,
            "version": "0.1",
            "backbone": FULL[network.backbone],
            "weights": weights,
            "preprocessing": f"RGB; {size}; x / 127.5 - 1",
            "dtype": "float32",
        }

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Bring a picture to its size and range: float32 (3, height, width)."""
        if self.side and picture.shape[:2] != (self.side, self.side):
            resized = Image.fromarray(picture).resize((self.side, self.side), Image.Resampling.BILINEAR)
            picture = np.asarray(resized)
        elif min(picture.shape[:2]) < SMALLEST:
            raise UsageError(
                "a picture is too small for LPIPS", expected=f"at least {SMALLEST} x {SMALLEST} pixels",
                found=f"{picture.shape[1]} x {picture.shape[0]}", hint="Give a side, such as ?side=256.",
            )  # fmt: skip
        ranged = picture.astype(np.float32) / np.float32(127.5) - 1
        return np.ascontiguousarray(ranged.transpose(2, 0, 1), np.float32)

    def distances(self, pictures: Sequence[Prepared]) -> NDArray[np.float64]:
        """Measure every two pictures of a batch, float64 (n, n)."""
        sizes = {picture.shape for picture in pictures}
        if len(sizes) > 1:
            found = ", ".join(sorted(f"{width} x {height}" for _, height, width in sizes))
            raise UsageError(
                "pictures of several sizes cannot be compared", expected="one size", found=found,
                hint="Give a side, such as ?side=256.",
            )  # fmt: skip
        torch = importlib.import_module("torch")
        if len(pictures) < 2:
            return np.zeros((len(pictures), len(pictures)))
        with same_bits():
            stacked = torch.from_numpy(np.stack(pictures)).to(self.device)
            found_distances: NDArray[np.float64] = self.network.distances(stacked).cpu().numpy()
        return found_distances


def make(spec: Spec) -> LpipsMeasure:
    """Make the measure from one file, or from one of heads and one of the network."""
    options = spec.read(Options)
    files = [one_file(spec.target, spec)]
    if options.backbone:
        files.append(one_file(options.backbone, spec))
    tensors = {name: one for path in files for name, one in loaded_tensors(path, asked_by="lpips").items()}
    heads = {int(match[1]): tensor for name, tensor in tensors.items() if (match := HEAD.fullmatch(name))}
    layers = {match[1]: tensor for name, tensor in tensors.items() if (match := LAYER.fullmatch(name))}
    widths = tuple(int(heads[number].shape[1]) for number in sorted(heads))
    backbone = SHORT.get(LPIPS.get(widths, ""))
    if backbone is None:
        raise IntegrityError(
            "the heads are not those of LPIPS", where=str(files[0]), expected=" or ".join(SHORT),
            found=f"channels {', '.join(map(str, widths)) or 'of none'}",
        )  # fmt: skip
    if not layers:
        raise UsageError(
            "these weights are the heads of LPIPS alone, without the network they belong to",
            where=str(files[0]),
            expected=f"lpips:HEADS.safetensors?backbone=FILE.safetensors, the {FULL[backbone]} of torchvision",
        )
    network = Lpips(backbone, layers, [heads[number] for number in sorted(heads)])
    problem = network.problem()
    if problem:
        raise IntegrityError(
            f"the weights of {FULL[backbone]} are not complete", where=", ".join(map(str, files)), found=problem
        )
    return LpipsMeasure(network, weights_digest(files), options)


def one_file(target: str, spec: Spec) -> Path:
    """Find a file of weights."""
    if not target:
        raise UsageError("lpips needs a file of weights", where=str(spec), expected="lpips:FILE.safetensors")
    path, _ = known_weights(
        target, spec, ("lpips", "lpips-backbone"), of="LPIPS",
        expected="lpips (heads, with or without the network) or lpips-backbone (AlexNet, VGG-16, SqueezeNet)",
        convert=f"--out {Path(target).with_suffix('.safetensors')}",
    )  # fmt: skip
    return path


def weights_digest(files: Sequence[Path]) -> str:
    """Hash the weights: of one file its hash, of two that of both."""
    hashes = [digest_file(path) for path in files]
    return hashes[0] if len(hashes) == 1 else digest(hashes)
