"""Exact search: every query against every vector, one score per artifact."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.records.choices import Aggregate

__all__ = ["ArtifactVectors", "nearest"]


@dataclass(frozen=True, slots=True)
class ArtifactVectors:
    """The vectors of an index, sorted by artifact: artifact a has rows `starts[a]:starts[a + 1]`."""

    vectors: Vectors
    starts: NDArray[np.int64]

    def scores(self, queries: Vectors, aggregate: Aggregate) -> NDArray[np.float32]:
        """Score queries (n, dim) against all artifacts: (n, n_artifacts), the best or the mean of the best three."""
        similarity = queries @ self.vectors.T
        if aggregate == "max":
            best: NDArray[np.float32] = np.maximum.reduceat(similarity, self.starts[:-1], axis=1)
            return best
        parts = np.split(similarity, self.starts[1:-1], axis=1)
        return np.stack([top_mean(part, 3) for part in parts], axis=1)


def top_mean(similarity: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """Average the `count` largest of each row, or all when there are fewer."""
    mean: NDArray[np.float32] = np.sort(similarity, axis=1)[:, -count:].mean(axis=1)
    return mean


def nearest(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Give the k best columns of each row, best first; equal scores keep the order of the columns."""
    order: NDArray[np.int64] = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order
