"""An encoder for tests: reads pictures and texts, says that it has weights, and can log what it encodes."""

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from culturekit.core.registry import Entry, Spec
from culturekit.index.encoder import ENCODERS, EncoderIdentity, Prepared, TooLong, Vectors

DIM = 8
CONTEXT = 6  # Words of a text that are read


@dataclass(frozen=True, slots=True)
class Options:
    """`log` is a file to which one line is added per picture or text; `slow` are seconds per batch."""

    log: str = ""
    slow: float = 0.0
    batch: int = 4
    weights: str = "made up"


class CountingEncoder:
    """A vector is drawn from the hash of what is encoded."""

    caveat = "for tests only"

    def __init__(self, options: Options) -> None:
        self.options = options
        self.batch_size = options.batch
        self.identity = EncoderIdentity("counting", options.weights, "1", "whole", "float32", DIM)

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        return np.frombuffer(hashlib.sha256(picture.tobytes()).digest(), np.uint8)

    def encode_prepared(self, pictures: Sequence[Prepared]) -> Vectors:
        time.sleep(self.options.slow)
        assert len(pictures) <= self.batch_size
        self.note([bytes(one).hex() for one in pictures])
        return np.stack([drawn(bytes(one)) for one in pictures])

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        return self.encode_prepared([self.prepare(one) for one in pictures])

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        self.note(texts)
        return np.stack([drawn(" ".join(text.split()[:CONTEXT]).encode()) for text in texts])

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        lengths = [len(text.split()) for text in texts]
        return [TooLong(place, length, CONTEXT) for place, length in enumerate(lengths) if length > CONTEXT]

    def note(self, what: Sequence[str]) -> None:
        """Add lines to the log in one piece, so that a kill leaves none by half."""
        if self.options.log:
            descriptor = os.open(self.options.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(descriptor, "".join(f"{one}\n" for one in what).encode())
            os.close(descriptor)


def drawn(content: bytes) -> Vectors:
    """Draw a unit vector by a hash."""
    seed = int.from_bytes(hashlib.sha256(content).digest()[:8], "big")
    vector = np.random.default_rng(seed).normal(size=DIM)
    return (vector / np.sqrt(vector @ vector)).astype(np.float32)


def make(spec: Spec) -> CountingEncoder:
    """Make the encoder."""
    return CountingEncoder(spec.read(Options))


def register() -> None:
    """Give the encoder a name in this process."""
    ENCODERS.entries["counting"] = Entry("counting", f"{__name__}:make", "for tests")


def logged(log: Path) -> list[str]:
    """Read what was encoded."""
    return log.read_text(encoding="ascii").splitlines() if log.exists() else []
