"""InceptionV3: the features that FID and KID compare, and the class probabilities of the inception score."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.digests import digest_file
from culturekit.core.registry import Spec
from culturekit.core.torch_places import chosen_device
from culturekit.index.encoder import EncoderIdentity, ImageEncoder, Prepared, Vectors
from culturekit.index.models.torch_device import Batches, TorchOptions, usual_batch
from culturekit.index.weights import check_complete, known_weights, loaded_tensors

# InceptionV3 as a function of its weights: the one that published FIDs were measured with, and torchvision's.

_SIDE = 299
_FEATURES = 2048
_EPSILON = 0.001  # what the normalisation adds to a variance
_Tensor: TypeAlias = Any  # a torch tensor; planes are (n, channels, height, width)


@dataclass(frozen=True, slots=True)
class _Inception:
    """The network; `ported` takes the pooling of TensorFlow's graph, whose weights published FIDs were made with."""

    state: Mapping[str, _Tensor]  # tensors by the names that checkpoints give them
    ported: bool  # whether they come from that graph; else they are torchvision's

    @property
    def classes(self) -> int:
        """How many classes it tells apart."""
        return len(self.state["fc.bias"])

    def to(self, device: object) -> "_Inception":
        return replace(self, state={name: tensor.to(device) for name, tensor in self.state.items()})

    def rehearse(self) -> None:
        """Run on no numbers: what is not complete fails."""
        shadow, torch = self.to("meta"), importlib.import_module("torch")
        shadow.logits(shadow.features(torch.zeros(1, 3, _SIDE, _SIDE, device="meta")))

    def features(self, pictures: _Tensor) -> _Tensor:
        """Give the pooled features, (n, 2048), of pictures (n, 3, 299, 299)."""
        planes = self.unit("Conv2d_1a_3x3", pictures, stride=2, padded=False)
        planes = self.unit("Conv2d_2b_3x3", self.unit("Conv2d_2a_3x3", planes, padded=False))
        planes = self.unit("Conv2d_3b_1x1", _halved(planes))
        planes = _halved(self.unit("Conv2d_4a_3x3", planes, padded=False))
        for name in ("Mixed_5b", "Mixed_5c", "Mixed_5d"):
            planes = self.block_a(name, planes)
        planes = self.block_b("Mixed_6a", planes)
        for name in ("Mixed_6b", "Mixed_6c", "Mixed_6d", "Mixed_6e"):
            planes = self.block_c(name, planes)
        planes = self.block_d("Mixed_7a", planes)
        planes = self.block_e("Mixed_7b", planes, largest=False)
        return self.block_e("Mixed_7c", planes, largest=self.ported).mean((2, 3))

    def logits(self, features: _Tensor) -> _Tensor:
        """Give a number per class; the published inception score leaves the bias of the ported ones out."""
        bias = None if self.ported else self.state["fc.bias"]
        return _functional().linear(features, self.state["fc.weight"], bias)

    def unit(self, name: str, planes: _Tensor, *, stride: int = 1, padded: bool = True) -> _Tensor:
        """Convolve, normalise, and keep what is above zero; padded, a stride of one keeps the size."""
        weight = self.state[f"{name}.conv.weight"]
        padding = (weight.shape[2] // 2, weight.shape[3] // 2) if padded else 0
        planes = _functional().conv2d(planes, weight, stride=stride, padding=padding)
        mean, variance = self.state[f"{name}.bn.running_mean"], self.state[f"{name}.bn.running_var"]
        scale, shift = self.state[f"{name}.bn.weight"], self.state[f"{name}.bn.bias"]
        return _functional().relu(_functional().batch_norm(planes, mean, variance, scale, shift, eps=_EPSILON))

    def chain(self, name: str, planes: _Tensor, count: int) -> _Tensor:
        """Put units numbered from 1 behind one another."""
        for number in range(1, count + 1):
            planes = self.unit(f"{name}_{number}", planes)
        return planes

    def pooled(self, name: str, planes: _Tensor, *, largest: bool = False) -> _Tensor:
        """Pool over windows of three by three, then convolve.

        TensorFlow's mean counts only what lies within the picture, torchvision's counts its border too. In the
        published graph the last block takes the maximum, where the paper has the mean.
        """
        if largest:
            planes = _functional().max_pool2d(planes, 3, stride=1, padding=1)
        else:
            planes = _functional().avg_pool2d(planes, 3, stride=1, padding=1, count_include_pad=not self.ported)
        return self.unit(f"{name}.branch_pool", planes)

    def block_a(self, name: str, planes: _Tensor) -> _Tensor:
        """Look through windows of 1, of 5, and of 3 twice."""
        one = self.unit(f"{name}.branch1x1", planes)
        wide = self.chain(f"{name}.branch5x5", planes, 2)
        double = self.chain(f"{name}.branch3x3dbl", planes, 3)
        return _side_by_side(one, wide, double, self.pooled(name, planes))

    def block_b(self, name: str, planes: _Tensor) -> _Tensor:
        once = self.unit(f"{name}.branch3x3", planes, stride=2, padded=False)
        double = self.chain(f"{name}.branch3x3dbl", planes, 2)
        double = self.unit(f"{name}.branch3x3dbl_3", double, stride=2, padded=False)
        return _side_by_side(once, double, _halved(planes))

    def block_c(self, name: str, planes: _Tensor) -> _Tensor:
        """Look through windows of 7, each as a row and a column."""
        one = self.unit(f"{name}.branch1x1", planes)
        once = self.chain(f"{name}.branch7x7", planes, 3)
        twice = self.chain(f"{name}.branch7x7dbl", planes, 5)
        return _side_by_side(one, once, twice, self.pooled(name, planes))

    def block_d(self, name: str, planes: _Tensor) -> _Tensor:
        small = self.unit(f"{name}.branch3x3_1", planes)
        small = self.unit(f"{name}.branch3x3_2", small, stride=2, padded=False)
        large = self.chain(f"{name}.branch7x7x3", planes, 3)
        large = self.unit(f"{name}.branch7x7x3_4", large, stride=2, padded=False)
        return _side_by_side(small, large, _halved(planes))

    def block_e(self, name: str, planes: _Tensor, *, largest: bool) -> _Tensor:
        """Look through rows and columns side by side."""
        one = self.unit(f"{name}.branch1x1", planes)
        once = self.unit(f"{name}.branch3x3_1", planes)
        twice = self.chain(f"{name}.branch3x3dbl", planes, 2)
        crossed = [self.unit(f"{name}.branch3x3_2{part}", once) for part in "ab"]
        crossed += [self.unit(f"{name}.branch3x3dbl_3{part}", twice) for part in "ab"]
        return _side_by_side(one, *crossed, self.pooled(name, planes, largest=largest))


def _functional() -> Any:  # noqa: ANN401 - a module
    """Give torch's functions."""
    return importlib.import_module("torch.nn.functional")


def _halved(planes: _Tensor) -> _Tensor:
    """Keep the largest of every window of three by three, two apart."""
    return _functional().max_pool2d(planes, 3, stride=2)


def _side_by_side(*planes: _Tensor) -> _Tensor:
    return importlib.import_module("torch").cat(planes, 1)


Resizing: TypeAlias = Literal["tensorflow", "torch", "clean", "crop"]
_Scaled: TypeAlias = NDArray[np.float32]  # float32 (299, 299, 3), from 0 to 255
_CROPPED_FROM = 342

# what each does, as it stands in an identity
_RESIZINGS: Mapping[Resizing, str] = {
    "tensorflow": "whole picture bilinear as TensorFlow 1 has it, no antialiasing, corners aligned to the upper left",
    "torch": "whole picture bilinear between the middles of pixels, no antialiasing",
    "clean": "whole picture with Pillow's bicubic filter, antialiased, each channel in float32, clipped to 0 to 255",
    "crop": f"shorter side to {_CROPPED_FROM} with Pillow's bilinear filter, antialiased, and the middle of that",
}


def resized(picture: NDArray[np.uint8], resizing: Resizing) -> _Scaled:
    """Bring a picture, uint8 (height, width, 3), to 299 x 299."""
    if resizing == "clean":
        return _cleanly(picture)
    if resizing == "crop":
        return _cropped(picture)
    positions_of = _steps if resizing == "tensorflow" else _middles
    return _sampled(picture, positions_of(picture.shape[0]), positions_of(picture.shape[1]))


def _steps(length: int) -> NDArray[np.float32]:
    """Sample at multiples of the step, which leaves the lower right behind: what the published FIDs were made with."""
    return np.arange(_SIDE, dtype=np.float32) * np.float32(length / _SIDE)


def _middles(length: int) -> NDArray[np.float32]:
    """Sample at the middles of pixels, as `torch.nn.functional.interpolate` does."""
    scale = np.float32(length) / np.float32(_SIDE)
    places: NDArray[np.float32] = scale * (np.arange(_SIDE, dtype=np.float32) + np.float32(0.5)) - np.float32(0.5)
    return places.clip(min=0)


def _sampled(picture: NDArray[np.uint8], rows: NDArray[np.float32], columns: NDArray[np.float32]) -> _Scaled:
    """Mix the four pixels around each place, in float32."""
    top, bottom, down = _neighbours(rows, picture.shape[0])
    left, right, along = _neighbours(columns, picture.shape[1])
    upper, lower = picture[top].astype(np.float32), picture[bottom].astype(np.float32)
    across = along[np.newaxis, :, np.newaxis]
    above = upper[:, left] + (upper[:, right] - upper[:, left]) * across
    below = lower[:, left] + (lower[:, right] - lower[:, left]) * across
    mixed: _Scaled = above + (below - above) * down[:, np.newaxis, np.newaxis]
    return mixed


def _neighbours(
    places: NDArray[np.float32], length: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Give the pixel before and after each place, and how far it is from the one before."""
    before = np.minimum(places.astype(np.int64), length - 1)
    return before, np.minimum(before + 1, length - 1), places - before.astype(np.float32)


def _cleanly(picture: NDArray[np.uint8]) -> _Scaled:
    """Resize each channel as a picture of floats, so that nothing is rounded; overshoot is cut."""
    channels = [
        np.asarray(Image.fromarray(plane).resize((_SIDE, _SIDE), Image.Resampling.BICUBIC))
        for plane in np.moveaxis(picture, 2, 0).astype(np.float32)
    ]
    planes: _Scaled = np.stack(channels, axis=2)
    return planes.clip(0, 255)


def _cropped(picture: NDArray[np.uint8]) -> _Scaled:
    """Take the middle of a picture whose shorter side is somewhat larger, as torchvision's transform does."""
    height, width, _ = picture.shape
    shorter = min(height, width)
    size = (int(_CROPPED_FROM * width / shorter), int(_CROPPED_FROM * height / shorter))
    scaled = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR))
    top, left = (round((side - _SIDE) / 2) for side in scaled.shape[:2])
    return scaled[top : top + _SIDE, left : left + _SIDE].astype(np.float32)


_Given: TypeAlias = Literal["unit", "features", "probabilities"]

_GIVEN: dict[_Given, str] = {
    "unit": "pool3 brought to unit length, for nearest neighbours and not for FID",
    "features": "pool3 as it is, not of unit length",
    "probabilities": "class probabilities",
}


@dataclass(frozen=True, slots=True)
class Options:
    """How the network is run.

    Attributes:
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        dtype: float32, which published numbers were computed in.
        batch: pictures at once; 0 chooses by device.
        resize: how pictures are brought to 299 x 299; `auto` takes what the published numbers of these weights had.
        give: what the vectors are: `unit` (pool3 of unit length), `features` (pool3 as it is) or `probabilities`.
    """

    device: str = "auto"
    dtype: Literal["auto", "float32"] = "auto"
    batch: Annotated[int, msgspec.Meta(ge=0, le=65536)] = 0
    resize: Literal["auto", "tensorflow", "torch", "clean", "crop"] = "auto"
    give: _Given = "unit"


class _Described(NamedTuple):
    """What the network says of pictures: features float32 (n, 2048) as they are, and probabilities (n, classes)."""

    features: NDArray[np.float32]
    probabilities: NDArray[np.float32]


class InceptionEncoder:
    """Pictures to pool3 features; `encode_prepared` gives what `give` asks for, `describe` both kinds at once."""

    caveat = (
        "InceptionV3 was trained to tell a thousand classes of ImageNet apart: its features say whether pictures look "
        "alike, not whether they show one culture."
    )

    def __init__(self, network: _Inception, weights: str, options: Options) -> None:
        """Take a network and the hash of its weights."""
        self.device = chosen_device(options.device)
        self.network, self.give = network.to(self.device), options.give
        usual: Resizing = "tensorflow" if network.ported else "crop"
        self.resizing: Resizing = usual if options.resize == "auto" else options.resize
        # whether grey is 128, as in the published graph, or 127.5, as pytorch-fid and torchvision have it
        self.centred = network.ported and self.resizing != "torch"
        self.batch_size = usual_batch(TorchOptions(batch=options.batch), self.device)
        self.batches = Batches(self.batch_size)
        steps = [_RESIZINGS[self.resizing], "(x - 128) / 128" if self.centred else "x / 127.5 - 1", _GIVEN[self.give]]
        logits = "softmax of the logits" + (" without their bias" if network.ported else "")
        self.identity = EncoderIdentity(
            name="inception" if self.give == "unit" else f"inception {self.give}",
            weights=weights,
            revision="TensorFlow 2015-12-05, ported" if network.ported else "torchvision",
            preprocessing="; ".join(steps) + (f", {logits}" if self.give == "probabilities" else ""),
            dtype="float32",
            dim=network.classes if self.give == "probabilities" else _FEATURES,
        )

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Bring a picture to the network's size and range: float32 (3, 299, 299)."""
        scaled = resized(picture, self.resizing)
        ranged = (scaled - 128) / 128 if self.centred else scaled / np.float32(127.5) - 1
        return np.ascontiguousarray(ranged.transpose(2, 0, 1), np.float32)

    def encode_prepared(self, pictures: Sequence[Prepared]) -> Vectors:
        """Give unit vectors, features or probabilities, as the SPEC said."""
        features, probabilities = self.describe(pictures)
        if self.give != "unit":
            return probabilities if self.give == "probabilities" else features
        norms = np.sqrt(np.einsum("nd,nd->n", features, features, dtype=np.float64))
        unit: Vectors = (features / np.maximum(norms, 1e-12)[:, np.newaxis]).astype(np.float32)
        return unit

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Prepare and encode pictures."""
        return self.encode_prepared([self.prepare(picture) for picture in pictures])

    def describe(self, pictures: Sequence[Prepared]) -> _Described:
        """Run prepared pictures through the network once, for FID, KID and the inception score."""
        both = self.batches.run(self.run_batch, pictures, dim=_FEATURES + self.network.classes)
        return _Described(*map(np.ascontiguousarray, np.split(both, [_FEATURES], axis=1)))

    def run_batch(self, pictures: Sequence[Prepared]) -> Vectors:
        """Give features and probabilities side by side."""
        torch = importlib.import_module("torch")
        features = self.network.features(torch.from_numpy(np.stack(pictures)).to(self.device))
        both: Vectors = torch.cat([features, self.network.logits(features).softmax(dim=1)], 1).cpu().numpy()
        return both


def make(spec: Spec) -> ImageEncoder:
    """Make the encoder from a file of weights."""
    options = spec.read(Options)
    path, kind = known_weights(
        spec.target, spec, ("fid-inception", "inception"), of="InceptionV3",
        expected="fid-inception (1,008 classes) or inception (1,000 classes)",
        convert="--kind fid-inception --out inception.safetensors",
    )  # fmt: skip
    network = _Inception(loaded_tensors(path, asked_by="the encoder inception"), kind == "fid-inception")
    check_complete(network.rehearse, of="InceptionV3", where=str(path))
    return InceptionEncoder(network, digest_file(path), options)
