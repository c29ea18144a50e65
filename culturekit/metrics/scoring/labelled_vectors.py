"""Vectors, and what each belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LabelledVectors"]


@dataclass(frozen=True, slots=True)
class LabelledVectors:
    """Vectors, float (n, dim), and what each belongs to: `ITEM`, or `ITEM#k` for its token or object k."""

    vectors: NDArray[np.floating]
    ids: Sequence[str]
