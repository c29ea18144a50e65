"""The edges into some nodes, turned round: the graph on disk knows children only."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.store import Graph
from culturekit.kg.walk.edge_sweep import edge_blocks, let_go

__all__ = ["ParentEdges"]


@dataclass(frozen=True, slots=True)
class ParentEdges:
    """Edges ordered by child, then parent, with their flags."""

    children: NDArray[np.uint32]
    parents: NDArray[np.uint32]
    flags: NDArray[np.uint16]

    @classmethod
    def read(cls, graph: Graph, parents: NDArray[np.uint32], children: Sequence[NDArray[np.uint32]]) -> "ParentEdges":
        """Read the edges from some parents to themselves and to some children."""
        wanted = np.zeros(len(graph.nodes), np.bool_)
        for some in (parents, *children):
            wanted[some] = True
        kept: list[tuple[NDArray[np.uint64], NDArray[np.uint16]]] = []
        for owners, edges in edge_blocks(graph.children_offsets, parents, graph.children, graph.edge_flags):
            below = graph.children[edges]
            own = np.flatnonzero(wanted[below])
            pairs = (below[own].astype(np.uint64) << np.uint64(32)) | parents[owners[own]]
            kept.append((pairs, graph.edge_flags[edges[own]]))
        let_go(graph.children_offsets, graph.children, graph.edge_flags)
        pairs = np.concatenate([np.empty(0, np.uint64), *(pairs for pairs, _ in kept)])
        flags = np.concatenate([np.empty(0, np.uint16), *(flags for _, flags in kept)])
        order = np.argsort(pairs)
        pairs = pairs[order]
        return cls((pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32), flags[order])

    def above(self, nodes: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint16]]:
        """Give the edges into each of some nodes: its place among them, the parent, the flags."""
        starts = np.searchsorted(self.children, nodes, "left")
        lengths = np.searchsorted(self.children, nodes, "right") - starts
        owners = np.repeat(np.arange(len(nodes)), lengths)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        places = starts[owners] + within
        return owners, self.parents[places], self.flags[places]
