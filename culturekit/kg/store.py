"""The graph on disk: tables of items and statements, and memory-mapped arrays to walk on.

A node is any item that the dump describes or points to; nodes are numbered by ascending QID.

| file | holds |
|---|---|
| `items.parquet`, `statements.parquet` | what the dump says, with the line it says it in |
| `nodes.npy` | uint32 (n_nodes,), the QID numbers, ascending |
| `children_offsets.npy` | int64 (n_nodes + 1,): the children of node i are `children[offsets[i]:offsets[i + 1]]` |
| `children.npy` | int32 (n_edges,): nodes with a P31 or P279 statement about the parent, ascending |
| `edge_flags.npy` | uint16 (n_edges,): properties, ranks and ends of the statements, see `statement_flags` |
| `country_flags.npy` | uint16 (n_nodes,): the same of the statements of a country |
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from culturekit.errors import IntegrityError

__all__ = ["Graph", "load_graph"]

ARRAYS = ("nodes", "children_offsets", "children", "edge_flags", "country_flags")


@dataclass(frozen=True, slots=True)
class Graph:
    """The arrays of a store."""

    nodes: NDArray[np.uint32]
    children_offsets: NDArray[np.int64]
    children: NDArray[np.int32]
    edge_flags: NDArray[np.uint16]
    country_flags: NDArray[np.uint16]

    def find(self, qid_number: int) -> int | None:
        """Find the node of a QID number; None when the dump never mentions it."""
        index = int(np.searchsorted(self.nodes, np.uint32(qid_number)))
        return index if index < len(self.nodes) and int(self.nodes[index]) == qid_number else None

    def edges_below(self, nodes: NDArray[np.signedinteger]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give the edges below nodes, all at once: places in `nodes`, and places in the arrays of edges."""
        starts = self.children_offsets[nodes]
        lengths = self.children_offsets[nodes + 1] - starts
        owners = np.repeat(np.arange(len(nodes)), lengths)
        return owners, np.arange(len(owners)) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)


def load_graph(folder: Path) -> Graph:
    """Open the arrays of a finished graph folder without reading them."""
    try:
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ARRAYS}
    except (FileNotFoundError, ValueError) as error:
        raise IntegrityError(
            "not a graph store", where=str(folder), found=str(error), hint="Make it with: culturekit kg ingest"
        ) from error
    return Graph(**arrays)
