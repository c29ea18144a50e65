"""One shortest path to each artifact, after the walk: among those of equal length the one with the smallest QIDs.

Paths are compared from the root on. Going back from the artifacts, hop by hop, leaves the few nodes that lie on any
of their shortest paths; going forward over these, the path of a child is the smallest of its parents', and itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.edge_sweep import edge_blocks, let_go
from culturekit.kg.store import Graph
from culturekit.kg.walk.candidate_rows import Reached
from culturekit.kg.walk.searches import Search, walked_nodes
from culturekit.kg.walk.walk import Pass, Walk

__all__ = ["shortest_paths"]

ROOTS = 64
"""A state is a node times ROOTS plus the bit of the root that one has come from."""


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


@dataclass(frozen=True, slots=True)
class Level:
    """The states of one hop, ascending. `owners` and `above` pair places in `states` with places one hop before."""

    states: NDArray[np.int64]
    owners: NDArray[np.int64]
    above: NDArray[np.int64]


def shortest_paths(
    graph: Graph, searches: Sequence[Search], walked: Walk, reached: Sequence[Reached]
) -> list[list[NDArray[np.uint32]]]:
    """Find the paths to what each search has reached, from its nearest root.

    Gives for each search, for each hop h, an array (n, h + 1) of nodes: the n artifacts at that hop, in their order.
    """
    most = max((int(own.hops.max()) for own in reached if len(own.nodes)), default=0)
    paths = [[np.zeros((int((own.hops == h).sum()), h + 1), np.uint32) for h in range(most + 1)] for own in reached]
    edges = ParentEdges.read(graph, walked_nodes(walked.traits), [own.nodes for own in reached])
    for one in walked.passes:
        masks = np.array([searches[number].edge_mask for number in one.bits.searches], np.uint16)
        rows = [[rows_of(one, number, own, hop) for hop in range(most + 1)] for number, own in enumerate(reached)]
        wanted = [np.concatenate([states for states, _ in own]) for own in zip(*rows, strict=True)]
        levels = go_back(one, masks, edges, wanted)
        best = go_forward(levels)
        for number, own in enumerate(rows):
            for hop, (states, places) in enumerate(own):
                paths[number][hop][places] = trace_back(levels, best, hop, states)
    return paths


def rows_of(one: Pass, number: int, reached: Reached, hop: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the artifacts of a search at a hop whose nearest root is in a pass: states, and places among those at it."""
    bits = np.full(int(reached.nearest.max(initial=0)) + 1, -1)
    for bit, (own, root) in enumerate(zip(one.bits.searches, one.bits.places, strict=True)):
        if own == number and root < len(bits):
            bits[root] = bit
    at_hop = reached.hops == hop
    own_bits = bits[reached.nearest[at_hop]]
    places = np.flatnonzero(own_bits >= 0)
    return reached.nodes[at_hop][places].astype(np.int64) * ROOTS + own_bits[places], places


def go_back(
    one: Pass, masks: NDArray[np.uint16], edges: ParentEdges, wanted: Sequence[NDArray[np.int64]]
) -> list[Level]:
    """Find the states that lie on shortest paths to the wanted ones, from the last hop to the roots."""
    nothing = np.empty(0, np.int64)
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
    needed = nothing
    for hop in range(len(wanted) - 1, 0, -1):
        states = np.unique(np.concatenate([needed, wanted[hop]]))
        if len(states) == 0:
            found.append((nothing, nothing, nothing))
            continue
        owners, parents, flags = edges.above((states // ROOTS).astype(np.uint32))
        bits = states[owners] % ROOTS
        there = (one.walked[hop - 1].at(parents).astype(np.uint64) >> bits.astype(np.uint64)) & np.uint64(1) != 0
        good = there & ((flags & masks[bits]) != 0)
        before = parents[good].astype(np.int64) * ROOTS + bits[good]
        found.append((states, owners[good], before))
        needed = np.unique(before)
    levels = [Level(needed, nothing, nothing)]
    for states, owners, before in reversed(found):
        levels.append(Level(states, owners, np.searchsorted(levels[-1].states, before)))
    return levels


def go_forward(levels: Sequence[Level]) -> list[NDArray[np.int64]]:
    """Choose for each state the place, one hop before, of the state that its smallest path comes from."""
    best = [np.empty(0, np.int64)]
    order = np.arange(len(levels[0].states))
    for level in levels[1:]:
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        firsts = np.flatnonzero(np.diff(level.owners, prepend=-1))
        smallest = np.minimum.reduceat(rank[level.above], firsts) if len(firsts) else firsts
        best.append(order[smallest])
        order = np.lexsort((level.states, smallest))
    return best


def trace_back(
    levels: Sequence[Level], best: Sequence[NDArray[np.int64]], hop: int, states: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Write the paths that end in states of a hop, root first."""
    paths = np.empty((len(states), hop + 1), np.uint32)
    places = np.searchsorted(levels[hop].states, states) if hop else np.empty(0, np.int64)
    for step in range(hop, -1, -1):
        if len(states):
            paths[:, step] = levels[step].states[places] // ROOTS
            places = best[step][places] if step else places
    return paths
