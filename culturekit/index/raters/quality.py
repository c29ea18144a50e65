"""What a quality scorer is: pictures in, and for some scorers what was asked for, one number each out."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Prepared

__all__ = ["QualityScorer"]


class QualityScorer(Protocol):
    """Judges how good a picture is.

    Preparing and scoring are apart, as with encoders, so that no more than a batch of small pictures is in memory.
    """

    @property
    def name(self) -> str:
        """The scorer's name as it stands in the `quality` table."""
        ...

    @property
    def caveat(self) -> str:
        """What a reader of a score must know about this scorer; empty when nothing."""
        ...

    @property
    def needs_prompts(self) -> bool:
        """Whether a picture is judged together with the text it was asked for by."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Everything that decides a value: weights (`none`, or their hash), preprocessing, and constants."""
        ...

    @property
    def batch_size(self) -> int:
        """How many pictures are judged at once."""
        ...

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Bring one picture, uint8 (height, width, 3), to the form that is judged; any thread may call this."""
        ...

    def score_prepared(self, pictures: Sequence[Prepared], prompts: Sequence[str] = ()) -> NDArray[np.float64]:
        """Score prepared pictures, each beside its prompt where prompts are needed."""
        ...

    def score(self, pictures: Sequence[NDArray[np.uint8]], prompts: Sequence[str] = ()) -> NDArray[np.float64]:
        """Prepare and score pictures; a value never depends on its neighbours."""
        ...
