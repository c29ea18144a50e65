"""An encoder of pictures and texts for tests: every different one gets a direction of its own."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from culturekit.core.registry import Entry, Spec
from culturekit.index.encoder import EncoderIdentity, TooLong, Vectors

DIM = 16


class ToyEncoder:
    """Directions by hash."""

    caveat = "a toy"
    batch_size = 4

    def __init__(self, revision: str) -> None:
        self.identity = EncoderIdentity("toy", "none", revision, "hash", "float32", DIM)

    def prepare(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return direction(picture.tobytes()).view(np.uint8)

    def encode_prepared(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        return np.stack([picture.view(np.float32) for picture in pictures])

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        return self.encode_prepared([self.prepare(picture) for picture in pictures])

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        return np.stack([direction(text.encode()) for text in texts])

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        return []


def direction(content: bytes) -> Vectors:
    seed = int.from_bytes(hashlib.sha256(content).digest()[:8], "little")
    vector = np.random.default_rng(seed).normal(size=DIM)
    unit: Vectors = (vector / np.sqrt(vector @ vector)).astype(np.float32)
    return unit


def make(spec: Spec) -> ToyEncoder:
    return ToyEncoder(spec.target or "1")


ENTRY: Entry[ToyEncoder] = Entry("toy", "tests.index.toy_encoder:make", "directions by hash")
