"""An encoder of the simulated world: what texts name and scenes show, in one space, more or less blurred."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from culturekit.builders.simulated.scene_reader import read_scene
from culturekit.generation.simulated.scenes.captions import all_named, named_in, understood
from culturekit.index.encoder import EncoderIdentity, TooLong, Vectors
from culturekit.registry import Spec

__all__ = ["SimulatedEncoder", "make"]

DIMENSIONS = 256


@dataclass(frozen=True, slots=True)
class Options:
    """How well the encoder knows what it compares.

    Attributes:
        blur: The length of the noise in each vector, against 1 for what is named or shown.
    """

    blur: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.0


class SimulatedEncoder:
    """Adds up directions, one for each thing that a text names, in English or as `spoken`, or that a scene shows."""

    caveat = "The simulated encoder knows the things of a made-up world by name; it stands for no model."
    batch_size = 64

    def __init__(self, blur: float) -> None:
        """Take how blurred its vectors are."""
        self.blur = blur
        self.identity = EncoderIdentity(
            "simulated", "none", "1", f"things of the simulated world, blur {blur:g}", "float32", DIMENSIONS
        )

    def prepare(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Take a picture as it is."""
        return picture

    def encode_prepared(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Encode pictures by the marks in them; one that is no scene shows nothing."""
        return self.encode_images(pictures)

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Encode pictures one after the other."""
        scenes = ((picture, read_scene(picture)) for picture in pictures)
        return self.stacked(
            self.vector(all_named(scene.shown) if scene else frozenset(), hashlib.sha256(picture.tobytes()).hexdigest())
            for picture, scene in scenes
        )

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Encode texts by the things that they name; one that names none has a direction of its own."""
        return self.stacked(self.vector(things_of(text) or frozenset((text,)), text) for text in texts)

    def stacked(self, vectors: Iterable[NDArray[np.float64]]) -> Vectors:
        """Put vectors together."""
        return np.array([*vectors], np.float32).reshape(-1, DIMENSIONS)

    def vector(self, things: frozenset[str], content: str) -> NDArray[np.float64]:
        """Add up things, and the noise that belongs to what was read."""
        clear = np.sum([direction(thing) for thing in sorted(things)] or [np.zeros(DIMENSIONS)], axis=0)
        clear = clear / (np.linalg.norm(clear) or 1.0)
        found = clear + (self.blur if things else 1.0) * direction(f"noise of {self.blur:g} in {content}")
        return np.asarray(found / np.linalg.norm(found))

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        """Read every text whole."""
        return []


def things_of(text: str) -> frozenset[str]:
    """Give what a text names in English, or else in the language of the simulated world."""
    return all_named(named_in(text)) or all_named(named_in(understood(text)))


@lru_cache(maxsize=65_536)
def direction(name: str) -> NDArray[np.float64]:
    """Draw the direction, of length 1, that belongs to a name."""
    seed = int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:16], "big")
    drawn = np.random.default_rng(seed).normal(size=DIMENSIONS)
    return np.asarray(drawn / np.linalg.norm(drawn))


def make(spec: Spec) -> SimulatedEncoder:
    """Make the encoder that a SPEC describes."""
    return SimulatedEncoder(spec.read(Options, such_as="blur=0.5").blur)
