"""How many cycles and self-loops lie on the ground that a walk has covered."""

from collections.abc import Mapping

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from culturekit.kg.walk.traits import WALKED
from culturekit.kg.walk.walk import Walk

__all__ = ["count_loops"]


def count_loops(walked: Walk) -> Mapping[str, int]:
    """Count among the nodes walked on from, along edges that count for some concept.

    `self_loops` are nodes stated to be below themselves, `cycles` groups of two or more nodes that are each below
    every other, and `nodes_in_cycles` the nodes in such groups. A walk passes each of them once per root.
    """
    parents, children = walked.class_edges
    both = (walked.traits[children] & WALKED) != 0
    parents, children = parents[both], children[both]
    loops = parents == children
    nodes = np.unique(np.concatenate([parents, children]))
    above, below = np.searchsorted(nodes, parents[~loops]), np.searchsorted(nodes, children[~loops])
    matrix = csr_array((np.ones(len(above), np.int8), (above, below)), shape=(len(nodes), len(nodes)))
    sizes = np.empty(0, np.int64)
    if len(nodes):
        sizes = np.bincount(connected_components(matrix, directed=True, connection="strong")[1])
    cycles = sizes > 1
    return {"self_loops": int(loops.sum()), "cycles": int(cycles.sum()), "nodes_in_cycles": int(sizes[cycles].sum())}
