"""What a quality scorer is: pictures in, one number each."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["QualityScorer"]


class QualityScorer(Protocol):
    """Judges how good a picture is, whatever it shows."""

    @property
    def name(self) -> str:
        """The scorer's name as it stands in the `quality` table."""
        ...

    @property
    def caveat(self) -> str:
        """What a reader of a score must know about this scorer; empty when nothing."""
        ...

    def score(self, pictures: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
        """Score pictures, each uint8 (height, width, 3); a value never depends on its neighbours in the batch."""
        ...
