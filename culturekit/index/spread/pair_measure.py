"""What a measure of pairs is: the pictures of a batch in, how far every two of them are apart out."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Prepared

__all__ = ["PairMeasure"]


class PairMeasure(Protocol):
    """Says how far pictures are apart.

    Preparing and measuring are apart, as with encoders, so that no more than a batch of small pictures is in memory.
    """

    @property
    def name(self) -> str:
        """The measure's name as it stands in tables."""
        ...

    @property
    def caveat(self) -> str:
        """What a reader must know about this measure; empty when nothing."""
        ...

    @property
    def licence(self) -> str:
        """Of the weights."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Everything that decides a value: weights (`none`, or their hash), preprocessing, and constants."""
        ...

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Bring a picture, uint8 (height, width, 3), to the form that is measured."""
        ...

    def distances(self, pictures: Sequence[Prepared]) -> NDArray[np.float64]:
        """Measure every two pictures of a batch, float64 (n, n): symmetric, zeros on the diagonal."""
        ...
