"""Statistics of many draws at once: how often each cluster was drawn stands for the draw."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counts", "Drawn", "OfCounts", "of_draws", "times_drawn"]

Counts: TypeAlias = NDArray[np.float64]
"""(draws, clusters): how often each cluster was drawn."""

OfCounts: TypeAlias = Callable[[Counts], NDArray[np.float64]]
"""A statistic of each row of such counts, (draws,)."""

Drawn: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""A statistic of each row of cluster numbers, (draws, drawn clusters) to (draws,)."""

AT_A_TIME = 1_000_000
"""How many counts are held at a time; the answers do not depend on it."""


def times_drawn(drawn: NDArray[np.int64], clusters: int) -> Counts:
    """Count how often each cluster was drawn, from cluster numbers (draws, drawn clusters)."""
    rows = np.arange(len(drawn))[:, None] * clusters
    counts = np.bincount((drawn + rows).ravel(), minlength=len(drawn) * clusters)
    return counts.reshape(len(drawn), clusters).astype(np.float64)


def of_draws(statistic: OfCounts, *, clusters: int, width: int = 1) -> Drawn:
    """Make a statistic of counts one of drawn clusters; `width` numbers are held for each count."""
    step = max(1, AT_A_TIME // (clusters * width))

    def of(drawn: NDArray[np.int64]) -> NDArray[np.float64]:
        blocks = [drawn[start : start + step] for start in range(0, len(drawn), step)]
        return np.concatenate([statistic(times_drawn(block, clusters)) for block in blocks])

    return of
