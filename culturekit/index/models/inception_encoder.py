"""InceptionV3: the features that FID and KID compare, and the class probabilities of the inception score."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.digests import digest_file
from culturekit.core.registry import Spec
from culturekit.core.torch_places import chosen_device, needed_package
from culturekit.index.encoder import EncoderIdentity, ImageEncoder, Prepared, Vectors
from culturekit.index.models.torch_device import Batches, TorchOptions, usual_batch
from culturekit.index.weights import fill_network, known_weights, loaded_tensors

_SIDE = 299
_FEATURES = 2048
_Tensor: TypeAlias = Any  # a torch tensor; planes are (n, channels, height, width)


def _built(state: Mapping[str, _Tensor], *, ported: bool, where: str) -> tuple[Any, Any]:
    """Build torchvision's network up to its pooled features, and its last layer, of tensors as checkpoints name them.

    Of `ported` weights, those of TensorFlow's graph that published FIDs had, it has that graph's pooling, and no bias
    in the last layer, as the published inception score has none.
    """
    models = needed_package("torchvision.models.inception", kind="encoder inception", extra="embed")
    torch = importlib.import_module("torch")
    with torch.device("meta"):
        layers = models.Inception3(num_classes=len(state["fc.bias"]), aux_logits=False, init_weights=False)
    kept = {name: tensor for name, tensor in state.items() if not name.startswith("AuxLogits.")}
    fill_network(layers, kept, of="InceptionV3", where=where)
    last, layers.avgpool = layers.fc, torch.nn.Identity()
    layers.fc = layers.avgpool
    if ported:
        last.bias = None
        inner = partial(torch.nn.functional.avg_pool2d, count_include_pad=False)
        for name, block in layers.named_children():
            if hasattr(block, "branch_pool"):
                pool = torch.nn.functional.max_pool2d if name == "Mixed_7c" else inner
                block.register_forward_hook(partial(_pooled_again, pool=pool))
    return layers, last


def _pooled_again(block: Any, given: tuple[_Tensor], planes: _Tensor, *, pool: Callable[..., _Tensor]) -> _Tensor:  # noqa: ANN401 - a module
    """Replace the last branch of a block by that of another pooling.

    TensorFlow's mean counts only what lies within the picture, torchvision's counts its border too. In the published
    graph the last block takes the maximum, where the paper has the mean.
    """
    branch = block.branch_pool(pool(given[0], 3, stride=1, padding=1))
    return importlib.import_module("torch").cat([planes[:, : -branch.shape[1]], branch], 1)


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

    def __init__(self, layers: Any, last: Any, weights: str, options: Options, *, ported: bool) -> None:  # noqa: ANN401
        """Take a network without its last layer, that layer, and the hash of the weights."""
        self.device = chosen_device(options.device)
        self.layers, self.last, self.give = layers.to(self.device), last.to(self.device), options.give
        self.classes = int(last.out_features)
        usual: Resizing = "tensorflow" if ported else "crop"
        self.resizing: Resizing = usual if options.resize == "auto" else options.resize
        # whether grey is 128, as in the published graph, or 127.5, as pytorch-fid and torchvision have it
        self.centred = ported and self.resizing != "torch"
        self.batch_size = usual_batch(TorchOptions(batch=options.batch), self.device)
        self.batches = Batches(self.batch_size)
        steps = [_RESIZINGS[self.resizing], "(x - 128) / 128" if self.centred else "x / 127.5 - 1", _GIVEN[self.give]]
        logits = "softmax of the logits" + (" without their bias" if ported else "")
        self.identity = EncoderIdentity(
            name="inception" if self.give == "unit" else f"inception {self.give}",
            weights=weights,
            revision="TensorFlow 2015-12-05, ported" if ported else "torchvision",
            preprocessing="; ".join(steps) + (f", {logits}" if self.give == "probabilities" else ""),
            dtype="float32",
            dim=self.classes if self.give == "probabilities" else _FEATURES,
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
        both = self.batches.run(self.run_batch, pictures, dim=_FEATURES + self.classes)
        return _Described(*map(np.ascontiguousarray, np.split(both, [_FEATURES], axis=1)))

    def run_batch(self, pictures: Sequence[Prepared]) -> Vectors:
        """Give features and probabilities side by side."""
        torch = importlib.import_module("torch")
        planes = self.layers(torch.from_numpy(np.stack(pictures)).to(self.device)).unflatten(1, (_FEATURES, -1))
        features = planes.mean(2)
        both: Vectors = torch.cat([features, self.last(features).softmax(dim=1)], 1).cpu().numpy()
        return both


def make(spec: Spec) -> ImageEncoder:
    """Make the encoder from a file of weights."""
    options = spec.read(Options)
    path, kind = known_weights(
        spec.target, spec, ("fid-inception", "inception"), of="InceptionV3",
        expected="fid-inception (1,008 classes) or inception (1,000 classes)",
        convert="--kind fid-inception --out inception.safetensors",
    )  # fmt: skip
    tensors = loaded_tensors(path, asked_by="the encoder inception")
    ported = kind == "fid-inception"
    layers, last = _built(tensors, ported=ported, where=str(path))
    return InceptionEncoder(layers, last, digest_file(path), options, ported=ported)
