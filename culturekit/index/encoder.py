"""What an encoder is: pictures or texts in, unit vectors out, and an identity that says what exactly made them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Encoder", "EncoderIdentity", "ImageEncoder", "Prepared", "TextEncoder", "TooLong", "Vectors"]

Vectors: TypeAlias = NDArray[np.float32]
"""float32 (n, dim), unit norm."""

Prepared: TypeAlias = NDArray[Any]
"""One picture as a model takes it; the same shape and type for every picture of an encoder."""


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """Everything that decides a vector besides the picture; two identities never mix in one index."""

    name: str
    weights: str
    revision: str
    preprocessing: str
    dtype: str
    dim: int

    def as_options(self) -> dict[str, object]:
        """Give the identity as it stands in manifests."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TooLong:
    """A text that an encoder reads only in part: its place among those given, its tokens, and how many are read."""

    place: int
    tokens: int
    most: int


class Encoder(Protocol):
    """What turns something into vectors."""

    @property
    def identity(self) -> EncoderIdentity:
        """What exactly encodes."""
        ...

    @property
    def caveat(self) -> str:
        """What a reader of a score must know about this encoder; empty when nothing."""
        ...


@runtime_checkable
class ImageEncoder(Encoder, Protocol):
    """Turns pictures into vectors.

    Preparing and encoding are apart, so that threads can prepare the next pictures while a device encodes these.
    """

    @property
    def batch_size(self) -> int:
        """How many pictures are encoded at once; part of what decides the last bits of a vector."""
        ...

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Bring one picture, uint8 (height, width, 3), to the form that is encoded; any thread may call this."""
        ...

    def encode_prepared(self, pictures: Sequence[Prepared]) -> Vectors:
        """Encode prepared pictures, `batch_size` at once."""
        ...

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Prepare and encode pictures; a vector never depends on which others are in its batch."""
        ...


@runtime_checkable
class TextEncoder(Encoder, Protocol):
    """Turns texts into vectors; one that reads pictures too puts both into one space."""

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Encode texts; what is longer than the model's context is cut, and `too_long` says which those are."""
        ...

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        """List the texts that are longer than the model's context."""
        ...
