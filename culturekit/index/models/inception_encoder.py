"""InceptionV3: the features that FID and KID compare, and the class probabilities of the inception score."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from culturekit.errors import IntegrityError
from culturekit.index.encoder import EncoderIdentity, ImageEncoder, Prepared, Vectors
from culturekit.index.models.inception_network import FEATURES, Inception
from culturekit.index.models.inception_resizing import RESIZINGS, Resizing, resized
from culturekit.index.models.torch_device import Batches, TorchOptions, chosen_device, usual_batch
from culturekit.index.weights.known_weights import known_weights, loaded_tensors
from culturekit.registry import Spec
from culturekit.storage.digests import digest_file

__all__ = ["Described", "InceptionEncoder", "Options", "make"]

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
