"""Values that belong together, such as those of a prompt: in one order, whatever order they came in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.arguments import argument_error

__all__ = ["Clustered", "Keys", "cluster_codes", "cluster_keys", "clustered", "finite_rows"]

Keys: TypeAlias = Sequence[str] | Sequence[int] | NDArray[np.generic]
"""What says which cluster a value belongs to: all texts, or all numbers."""


@dataclass(frozen=True, slots=True)
class Clustered:
    """Rows sorted by cluster, and within a cluster by value: the order in which they came is forgotten.

    Attributes:
        rows: float64, (n,) or (n, d).
        names: (k,): the clusters, sorted.
        starts: int64, (k,): the first row of each cluster.
        sizes: int64, (k,): the number of its rows.
    """

    rows: NDArray[np.float64]
    names: NDArray[np.generic]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def means(self) -> NDArray[np.float64]:
        """Average the rows of each cluster, float64 (k,) or (k, d); equal values give exactly that value."""
        first = self.rows[self.starts]
        shifts = self.rows - np.repeat(first, self.sizes, axis=0)
        sizes = self.sizes if self.rows.ndim == 1 else self.sizes[:, None]
        return np.asarray(first + np.add.reduceat(shifts, self.starts, axis=0) / sizes)

    def parts(self) -> list[NDArray[np.float64]]:
        """Part the rows by cluster."""
        return np.split(self.rows, self.starts[1:])

    def take(self, clusters: NDArray[np.integer]) -> NDArray[np.float64]:
        """Collect the rows of some clusters, (m,), each as often as it is named."""
        if len(self.names) == len(self.rows):
            return np.asarray(self.rows[clusters])
        sizes = self.sizes[clusters]
        before = np.cumsum(sizes) - sizes
        return np.asarray(self.rows[np.repeat(self.starts[clusters] - before, sizes) + np.arange(sizes.sum())])


def clustered(rows: NDArray[np.float64], clusters: Keys | None, *, name: str = "clusters") -> Clustered:
    """Put rows, (n,) or (n, d), into clusters; without clusters each row is one."""
    keys = np.arange(len(rows)) if clusters is None else cluster_keys(name, clusters, length=len(rows))
    names, codes = np.unique(keys, return_inverse=True)
    columns = rows[:, None] if rows.ndim == 1 else rows
    by_value = tuple(columns.T[::-1])
    # Without clusters the rows themselves are the clusters, and only their values order them.
    order = np.lexsort(by_value if clusters is None else (*by_value, codes))
    sizes = np.bincount(codes, minlength=len(names)).astype(np.int64)
    return Clustered(rows[order], names, np.cumsum(sizes) - sizes, sizes)


def cluster_keys(name: str, clusters: ArrayLike, *, length: int) -> NDArray[np.generic]:
    """Read which cluster each value belongs to, (n,)."""
    keys = np.asarray(clusters.to_list() if hasattr(clusters, "to_list") else clusters)
    if keys.ndim != 1 or len(keys) != length:
        raise argument_error(name, f"one per value, of length {length}", f"shape {keys.shape}")
    if keys.dtype.kind == "O":
        raise argument_error(name, "all texts or all numbers", clusters)
    return keys


def cluster_codes(name: str, clusters: ArrayLike, *, length: int) -> NDArray[np.int64]:
    """Number the clusters in their order, int64 (n,)."""
    _, codes = np.unique(cluster_keys(name, clusters, length=length), return_inverse=True)
    return np.asarray(codes, np.int64)


def finite_rows(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Read numbers as float64, (n,) or (n, d); all are finite, and there is at least one."""
    try:
        rows = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise argument_error(name, "numbers, (n,) or (n, d)", values) from error
    if rows.ndim not in (1, 2) or rows.size == 0:
        raise argument_error(name, "at least one row of numbers, (n,) or (n, d)", f"shape {rows.shape}")
    if not np.isfinite(rows).all():
        place = np.argwhere(~np.isfinite(rows))[0]
        raise argument_error(f"{name}[{', '.join(map(str, place))}]", "finite", float(rows[tuple(place)]))
    return rows
