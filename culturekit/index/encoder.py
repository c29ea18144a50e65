"""What an encoder is: pictures in, unit vectors out, and an identity that says what exactly made them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["EncoderIdentity", "ImageEncoder", "Vectors"]

Vectors: TypeAlias = NDArray[np.float32]
"""float32 (n, dim), unit norm."""


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


class ImageEncoder(Protocol):
    """Turns pictures into vectors."""

    @property
    def identity(self) -> EncoderIdentity:
        """What exactly encodes."""
        ...

    @property
    def caveat(self) -> str:
        """What a reader of a score must know about this encoder; empty when nothing."""
        ...

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Encode pictures, each uint8 (height, width, 3); a vector never depends on its neighbours in the batch."""
        ...
