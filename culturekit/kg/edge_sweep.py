"""The children of many nodes, block by block, from arrays that stay on disk."""

import itertools
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["edge_blocks", "let_go", "near_each_other"]

EDGES_AT_ONCE = 1 << 19
EDGES_KEPT = 1 << 24
NODES_KEPT = 1 << 23
"""How far apart what is read of a file may lie before its pages are handed back: some 64 MB."""


def edge_blocks(
    offsets: NDArray[np.int64], nodes: NDArray[np.uint32], *arrays: NDArray[Any]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Give the edges below nodes as pairs of arrays: places in `nodes`, and places in the arrays of edges.

    No block has more than EDGES_AT_ONCE edges, whatever the degrees. `arrays` are what the caller reads the edges
    from. The system counts much more of a file as the process's memory than was read of it, so pages are handed back
    as the sweep goes on; where nodes ascend, none is read twice.
    """
    starts, lengths = spans(offsets, nodes)
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    last_kept = 0
    for begin in range(0, total, EDGES_AT_ONCE):
        stop = min(begin + EDGES_AT_ONCE, total)
        first, last = np.searchsorted(ends, begin, "right"), np.searchsorted(ends, stop, "left") + 1
        befores = ends[first:last] - lengths[first:last]
        counts = np.minimum(ends[first:last], stop) - np.maximum(befores, begin)
        owners = np.repeat(np.arange(first, last), counts)
        edges = np.arange(begin, stop) + np.repeat(starts[first:last] - befores, counts)
        for part in near_each_other(edges, EDGES_KEPT):
            yield owners[part], edges[part]
            if abs(int(edges[part][-1]) - last_kept) > EDGES_KEPT:
                let_go(*arrays)
                last_kept = int(edges[part][-1])


def spans(offsets: NDArray[np.int64], nodes: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the first edge of each node, and how many it has."""
    starts, lengths = np.empty(len(nodes), np.int64), np.empty(len(nodes), np.int64)
    for part in near_each_other(nodes, NODES_KEPT):
        places = nodes[part].astype(np.int64)
        starts[part] = offsets[places]
        lengths[part] = offsets[places + 1] - starts[part]
        if len(places) < len(nodes):
            let_go(offsets)
    return starts, lengths


def near_each_other(places: NDArray[Any], distance: int) -> list[slice]:
    """Cut places in a file, which ascend as a rule, into runs that lie within a distance of each other."""
    if len(places) == 0 or int(places[-1]) - int(places[0]) < distance:
        return [slice(0, len(places))]
    window = places // distance
    cuts = [0, *(np.flatnonzero(window[1:] != window[:-1]) + 1).tolist(), len(places)]
    return [slice(begin, end) for begin, end in itertools.pairwise(cuts)]


def let_go(*arrays: NDArray[Any]) -> None:
    """Hand the pages of memory-mapped arrays back to the system, which reads them again when they are needed."""
    for array in arrays:
        mapped: object = array.base
        while isinstance(mapped, np.ndarray):
            mapped = mapped.base
        if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)
