"""What a walk asks of a node, in one uint16, so that one look answers it.

The twelve low bits are the node's country flags (see `statement_flags`); above them stand HAS_CHILDREN, and WALKED,
which the walk sets on every node whose children it has looked at.
"""

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.store import Graph
from culturekit.kg.walk.edge_sweep import let_go

__all__ = ["HAS_CHILDREN", "VALUES", "WALKED", "traits_of", "walked_nodes"]

COUNTRY_BITS = np.uint16((1 << 12) - 1)
HAS_CHILDREN = np.uint16(1 << 15)
WALKED = np.uint16(1 << 14)
VALUES = 1 << 16
"""How many values a uint16 has: the length of a table that is looked up by traits or flags."""

NODES_AT_ONCE = 1 << 22


def traits_of(graph: Graph) -> NDArray[np.uint16]:
    """Read the traits of all nodes, block by block."""
    traits = np.empty(len(graph.nodes), np.uint16)
    for begin in range(0, len(traits), NODES_AT_ONCE):
        end = min(begin + NODES_AT_ONCE, len(traits))
        offsets = graph.children_offsets[begin : end + 1]
        traits[begin:end] = graph.country_flags[begin:end] & COUNTRY_BITS
        traits[begin:end] |= (offsets[1:] > offsets[:-1]) * HAS_CHILDREN
        let_go(graph.children_offsets, graph.country_flags)
    return traits


def walked_nodes(traits: NDArray[np.uint16]) -> NDArray[np.uint32]:
    """List the nodes whose children were looked at, ascending."""
    parts = [
        (begin + np.flatnonzero(traits[begin : begin + NODES_AT_ONCE] & WALKED)).astype(np.uint32)
        for begin in range(0, len(traits), NODES_AT_ONCE)
    ]
    return np.concatenate([np.empty(0, np.uint32), *parts])
