"""What the search benchmark searches: vectors as real embeddings lie, in clusters about a common middle, and random."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["Vectors", "draw_queries", "written"]

Vectors = NDArray[np.float32]

ROWS_AT_ONCE = 20_000
CLUSTERS = 3000
NOISE = {"clustered": 0.05, "random": 1.0}
"""How far a query lies from the vector that it is made from, against that vector's own spread."""


def written(folder: Path, kind: str, rows: int, dim: int) -> Path:
    """Write unit vectors, block by block; at 300,000 rows there are a hundred in a cluster on average."""
    path = folder / f"{kind}-{rows}-{dim}.npy"
    if path.exists():
        return path
    rng = np.random.default_rng([rows, dim])
    common = rng.standard_normal(dim)
    middles = (0.8 * common + rng.standard_normal((CLUSTERS, dim))).astype(np.float32)
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, dim))
    cluster = np.sort(rng.integers(0, CLUSTERS, rows))
    for start in range(0, rows, ROWS_AT_ONCE):
        some = array[start : start + ROWS_AT_ONCE]
        drawn = rng.standard_normal(some.shape, dtype=np.float32)
        some[:] = unit(drawn if kind == "random" else middles[cluster[start : start + ROWS_AT_ONCE]] + 0.6 * drawn)
    array.flush()
    return path


def draw_queries(vectors: Vectors, kind: str, count: int) -> Vectors:
    """Draw queries near vectors of the set."""
    rng = np.random.default_rng(count)
    near = np.asarray(vectors[rng.integers(0, len(vectors), count)])
    noise = rng.standard_normal(near.shape, dtype=np.float32) / np.float32(np.sqrt(near.shape[1]))
    return unit(near + NOISE[kind] * noise)


def unit(vectors: Vectors) -> Vectors:
    """Bring vectors to unit length."""
    norms: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / norms
