"""The children of many nodes, block by block, from arrays that stay on disk."""

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["edge_blocks", "let_go"]

EDGES_AT_ONCE = 1 << 19
NODES_AT_ONCE = 1 << 20
BLOCKS_KEPT = 64


def edge_blocks(
    offsets: NDArray[np.int64], nodes: NDArray[np.uint32], *arrays: NDArray[Any]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Give the edges below nodes as pairs of arrays: places in `nodes`, and places in the arrays of edges.

    No block has more than EDGES_AT_ONCE edges, whatever the degrees. `arrays` are what the caller reads the edges
    from; their pages are handed back now and then, so that a long sweep does not keep the whole file in memory.
    """
    starts, lengths = spans(offsets, nodes)
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    for number, begin in enumerate(range(0, total, EDGES_AT_ONCE)):
        stop = min(begin + EDGES_AT_ONCE, total)
        first, last = np.searchsorted(ends, begin, "right"), np.searchsorted(ends, stop, "left") + 1
        befores = ends[first:last] - lengths[first:last]
        counts = np.minimum(ends[first:last], stop) - np.maximum(befores, begin)
        owners = np.repeat(np.arange(first, last), counts)
        yield owners, np.arange(begin, stop) + np.repeat(starts[first:last] - befores, counts)
        if number % BLOCKS_KEPT == BLOCKS_KEPT - 1:
            let_go(*arrays)


def spans(offsets: NDArray[np.int64], nodes: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the first edge of each node, and how many it has."""
    starts, lengths = np.empty(len(nodes), np.int64), np.empty(len(nodes), np.int64)
    for begin in range(0, len(nodes), NODES_AT_ONCE):
        part = slice(begin, begin + NODES_AT_ONCE)
        places = nodes[part].astype(np.int64)
        starts[part] = offsets[places]
        lengths[part] = offsets[places + 1] - starts[part]
        let_go(offsets)
    return starts, lengths


def let_go(*arrays: NDArray[Any]) -> None:
    """Hand the pages of memory-mapped arrays back to the system, which reads them again when they are needed."""
    for array in arrays:
        mapped: object = array.base
        if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)
