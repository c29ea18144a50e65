"""InceptionV3: the features that FID and KID compare, and the class probabilities of the inception score."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.errors import IntegrityError
from culturekit.index.encoder import EncoderIdentity, ImageEncoder, Prepared, Vectors
from culturekit.index.models.inception_network import FEATURES, Inception
from culturekit.index.models.torch_device import Batches, TorchOptions, chosen_device, usual_batch
from culturekit.index.weights.known_weights import known_weights, loaded_tensors
from culturekit.registry import Spec
from culturekit.storage.digests import digest_file

__all__ = ["InceptionEncoder", "Options", "Resizing", "make", "resized"]

Resizing: TypeAlias = Literal["tensorflow", "torch", "clean", "crop"]

Scaled: TypeAlias = NDArray[np.float32]
"""float32 (299, 299, 3), from 0 to 255."""

SIDE = 299
CROPPED_FROM = 342

RESIZINGS: Mapping[Resizing, str] = {
    "tensorflow": "whole picture bilinear as TensorFlow 1 has it, no antialiasing, corners aligned to the upper left",
    "torch": "whole picture bilinear between the middles of pixels, no antialiasing",
    "clean": "whole picture with Pillow's bicubic filter, antialiased, each channel in float32, clipped to 0 to 255",
    "crop": f"shorter side to {CROPPED_FROM} with Pillow's bilinear filter, antialiased, and the middle of that",
}
"""What each does, as it stands in an identity."""


def resized(picture: NDArray[np.uint8], resizing: Resizing) -> Scaled:
    """Bring a picture, uint8 (height, width, 3), to 299 x 299."""
    return METHODS[resizing](picture)


def like_tensorflow(picture: NDArray[np.uint8]) -> Scaled:
    """Sample at multiples of the step, which leaves the lower right behind: what the published FIDs were made with."""
    height, width, _ = picture.shape
    return sampled(picture, steps(height), steps(width))


def steps(length: int) -> NDArray[np.float32]:
    """Place the samples as TensorFlow 1 does."""
    return np.arange(SIDE, dtype=np.float32) * np.float32(length / SIDE)


def like_torch(picture: NDArray[np.uint8]) -> Scaled:
    """Sample at the middles of pixels, as `torch.nn.functional.interpolate` does."""
    height, width, _ = picture.shape
    return sampled(picture, middles(height), middles(width))


def middles(length: int) -> NDArray[np.float32]:
    """Place the samples as torch does."""
    scale = np.float32(length) / np.float32(SIDE)
    places: NDArray[np.float32] = scale * (np.arange(SIDE, dtype=np.float32) + np.float32(0.5)) - np.float32(0.5)
    return places.clip(min=0)


def sampled(picture: NDArray[np.uint8], rows: NDArray[np.float32], columns: NDArray[np.float32]) -> Scaled:
    """Mix the four pixels around each place, in float32."""
    top, bottom, down = neighbours(rows, picture.shape[0])
    left, right, along = neighbours(columns, picture.shape[1])
    upper, lower = picture[top].astype(np.float32), picture[bottom].astype(np.float32)
    across = along[np.newaxis, :, np.newaxis]
    above = upper[:, left] + (upper[:, right] - upper[:, left]) * across
    below = lower[:, left] + (lower[:, right] - lower[:, left]) * across
    mixed: Scaled = above + (below - above) * down[:, np.newaxis, np.newaxis]
    return mixed


def neighbours(
    places: NDArray[np.float32], length: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Give the pixel before and after each place, and how far it is from the one before."""
    before = np.minimum(places.astype(np.int64), length - 1)
    return before, np.minimum(before + 1, length - 1), places - before.astype(np.float32)


def cleanly(picture: NDArray[np.uint8]) -> Scaled:
    """Resize each channel as a picture of floats, so that nothing is rounded; overshoot is cut."""
    channels = [
        np.asarray(Image.fromarray(plane).resize((SIDE, SIDE), Image.Resampling.BICUBIC))
        for plane in np.moveaxis(picture, 2, 0).astype(np.float32)
    ]
    planes: Scaled = np.stack(channels, axis=2)
    return planes.clip(0, 255)


def cropped(picture: NDArray[np.uint8]) -> Scaled:
    """Take the middle of a picture whose shorter side is somewhat larger, as torchvision's transform does."""
    height, width, _ = picture.shape
    shorter = min(height, width)
    size = (int(CROPPED_FROM * width / shorter), int(CROPPED_FROM * height / shorter))
    scaled = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR))
    top, left = (round((side - SIDE) / 2) for side in scaled.shape[:2])
    return scaled[top : top + SIDE, left : left + SIDE].astype(np.float32)


METHODS: Mapping[Resizing, Callable[[NDArray[np.uint8]], Scaled]] = {
    "tensorflow": like_tensorflow,
    "torch": like_torch,
    "clean": cleanly,
    "crop": cropped,
}


Given: TypeAlias = Literal["unit", "features", "probabilities"]

GIVEN: dict[Given, str] = {
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
    give: Given = "unit"


@dataclass(frozen=True, slots=True)
class Described:
    """What the network says of pictures: features float32 (n, 2048) as they are, and probabilities (n, classes)."""

    features: NDArray[np.float32]
    probabilities: NDArray[np.float32]


class InceptionEncoder:
    """Pictures to pool3 features; `encode_prepared` gives what `give` asks for, `describe` both kinds at once."""

    caveat = (
        "InceptionV3 was trained to tell a thousand classes of ImageNet apart: its features say whether pictures look "
        "alike, not whether they show one culture."
    )

    def __init__(self, network: Inception, weights: str, options: Options) -> None:
        """Take a network and the hash of its weights."""
        self.device = chosen_device(options.device)
        self.network = network.to(self.device)
        self.ported = network.ported
        self.give = options.give
        self.resizing: Resizing = (
            options.resize if options.resize != "auto" else "tensorflow" if network.ported else "crop"
        )
        self.classes = network.classes
        self.batch_size = usual_batch(TorchOptions(batch=options.batch), self.device)
        self.batches = Batches(self.batch_size)
        self.weights = weights
        self.identity = self.identity_giving(options.give)

    def identity_giving(self, give: Given) -> EncoderIdentity:
        """Say what exactly makes the vectors of one kind."""
        scale = "(x - 128) / 128" if self.centred else "x / 127.5 - 1"
        logits = ", softmax of the logits without their bias" if self.ported else ", softmax of the logits"
        return EncoderIdentity(
            name="inception" if give == "unit" else f"inception {give}",
            weights=self.weights,
            revision="TensorFlow 2015-12-05, ported" if self.ported else "torchvision",
            preprocessing=f"{RESIZINGS[self.resizing]}; {scale}; {GIVEN[give]}"
            + (logits if give == "probabilities" else ""),
            dtype="float32",
            dim=self.classes if give == "probabilities" else FEATURES,
        )

    @property
    def centred(self) -> bool:
        """Whether grey is 128, as in the published graph, or 127.5, as pytorch-fid and torchvision have it."""
        return self.ported and self.resizing != "torch"

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Bring a picture to the network's size and range: float32 (3, 299, 299)."""
        scaled = resized(picture, self.resizing)
        ranged = (scaled - 128) / 128 if self.centred else scaled / np.float32(127.5) - 1
        return np.ascontiguousarray(ranged.transpose(2, 0, 1), np.float32)

    def encode_prepared(self, pictures: Sequence[Prepared]) -> Vectors:
        """Give unit vectors, features or probabilities, as the SPEC said."""
        described = self.describe(pictures)
        if self.give == "probabilities":
            return described.probabilities
        if self.give == "features":
            return described.features
        norms = np.sqrt(np.einsum("nd,nd->n", described.features, described.features, dtype=np.float64))
        unit: Vectors = (described.features / np.maximum(norms, 1e-12)[:, np.newaxis]).astype(np.float32)
        return unit

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Prepare and encode pictures."""
        return self.encode_prepared([self.prepare(picture) for picture in pictures])

    def describe(self, pictures: Sequence[Prepared]) -> Described:
        """Run prepared pictures through the network once, for FID, KID and the inception score."""
        both = self.batches.run(self.run_batch, pictures, dim=FEATURES + self.classes)
        features, probabilities = np.split(both, [FEATURES], axis=1)
        return Described(np.ascontiguousarray(features), np.ascontiguousarray(probabilities))

    def probabilities(self, pictures: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Give the class probabilities of pictures, (n, classes)."""
        return self.describe([self.prepare(picture) for picture in pictures]).probabilities

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
    network = Inception(loaded_tensors(path, asked_by="the encoder inception"), kind == "fid-inception")
    problem = network.problem()
    if problem:
        raise IntegrityError("the weights of InceptionV3 are not complete", where=str(path), found=problem)
    return InceptionEncoder(network, digest_file(path), options)
