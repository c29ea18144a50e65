"""Algorithm 1 from all roots of all concepts in one pass.

Each node has a mask of the roots that have reached it. A hop hands the new bits of the frontier on to the children,
along the statements that count for each root, and forgets those that a child has already: so every root visits a
node once, at its smallest hop, and a cycle ends. Nothing is kept of a node that has neither a country nor children;
paths are found afterwards, for those who ask (see `shortest_paths`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.edge_sweep import edge_blocks, let_go
from culturekit.kg.store import Graph
from culturekit.kg.walk.searches import HAS_CHILDREN, VALUES, WALKED, RootBits, Search, root_bits, traits_of

__all__ = ["Pass", "Walk", "groups_of", "walk"]

Bits = NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What one hop brings: nodes uint32 (n,), ascending, once each, and the bits of the roots that are new there."""

    nodes: NDArray[np.uint32]
    bits: Bits

    def for_roots(self, bits: np.unsignedinteger) -> "Arrivals":
        """Keep what concerns some roots."""
        new = self.bits & bits
        some = new != 0
        return Arrivals(self.nodes[some], new[some])

    def at(self, nodes: NDArray[np.uint32]) -> Bits:
        """Look up the bits of nodes; none where a node is not among the arrivals."""
        if len(self.nodes) == 0:
            return np.zeros(len(nodes), self.bits.dtype)
        places = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
        return np.where(self.nodes[places] == nodes, self.bits[places], self.bits.dtype.type(0))


def gather(parts: Sequence[tuple[NDArray[np.uint32], Bits]], dtype: type[np.unsignedinteger]) -> Arrivals:
    """Bring the parts of a hop together: each node once, its bits joined."""
    nodes = np.concatenate([np.empty(0, np.uint32), *(nodes for nodes, _ in parts)])
    bits = np.concatenate([np.empty(0, dtype), *(bits for _, bits in parts)])
    if len(nodes) == 0:
        return Arrivals(nodes, bits)
    order = np.argsort(nodes)
    nodes, bits = nodes[order], bits[order]
    first = np.flatnonzero(np.concatenate([[True], nodes[1:] != nodes[:-1]]))
    return Arrivals(nodes[first], np.bitwise_or.reduceat(bits, first))


def deliver(seen: Bits, nodes: NDArray[np.int64], bits: Bits) -> tuple[NDArray[np.int64], Bits]:
    """Add bits to those that nodes have, and give the nodes that gain any, with all they gain; a node may come twice.

    Writing through an index keeps only the last of several values for a node. What was lost is seen by reading
    back, and written again: a few rounds are much faster than `bitwise_or.at`.
    """
    before = seen[nodes]
    news = (bits & ~before) != 0
    nodes, bits, before = nodes[news], bits[news], before[news]
    seen[nodes] = before | bits
    after = seen[nodes]
    lost = np.flatnonzero((after & bits) != bits)
    if len(lost):
        while len(lost):
            seen[nodes[lost]] |= bits[lost]
            lost = lost[(seen[nodes[lost]] & bits[lost]) != bits[lost]]
        after = seen[nodes]
    return nodes, after & ~before


NodePairs: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.uint32]]
"""Parents and children, uint32 (n,) each."""


@dataclass(frozen=True, slots=True)
class Hop:
    """What a hop collects: artifacts, nodes to walk on from, and edges between nodes with children."""

    found: list[tuple[NDArray[np.uint32], Bits]] = field(default_factory=list)
    onward: list[tuple[NDArray[np.uint32], Bits]] = field(default_factory=list)
    class_edges: list[NodePairs] = field(default_factory=list)


class Walker:
    """The masks and tables of one pass; `traits` is shared by all passes of a walk."""

    def __init__(self, graph: Graph, searches: Sequence[Search], bits: RootBits, traits: NDArray[np.uint16]) -> None:
        """Tabulate the rules, and mark what each search may not enter as seen."""
        self.graph, self.bits, self.traits = graph, bits, traits
        self.edge_bits = bits.table([search.edge_mask for search in searches])
        self.artifact_bits = bits.table([search.country_mask for search in searches])
        self.counts = (np.arange(VALUES) & union([search.edge_mask for search in searches])) != 0
        self.matters = (self.artifact_bits != 0) | ((np.arange(VALUES) & HAS_CHILDREN) != 0)
        self.expand = bits.where([searches[own].expand_artifacts for own in bits.searches])
        self.special = bits.where([not searches[own].literal for own in bits.searches])
        self.through = at_roots(bits, [bits.of_search(own) & self.special for own in bits.searches])
        self.seen = np.zeros(len(graph.nodes), bits.dtype)
        for own in sorted(set(bits.searches)):
            self.seen[list(searches[own].blocked)] |= bits.of_search(own)

    def start(self) -> Arrivals:
        """Stand on the roots. Each is seen by itself, except where roots are nodes like any other."""
        start = at_roots(self.bits, [self.bits.dtype(1 << place) for place in range(len(self.bits.roots))])
        self.seen[start.nodes] |= start.bits & self.special
        return start

    def hop(self, frontier: Arrivals) -> Hop:
        """Hand the bits of a frontier on to its children."""
        got = Hop()
        fresh = (self.traits[frontier.nodes] & WALKED) == 0
        self.traits[frontier.nodes] |= WALKED
        for owners, nodes, allowed in self.children(frontier.nodes):
            between = fresh[owners] & ((self.traits[nodes] & HAS_CHILDREN) != 0)
            got.class_edges.append((frontier.nodes[owners[between]], nodes[between].astype(np.uint32)))
            self.sort_out(got, *deliver(self.seen, nodes, frontier.bits[owners] & allowed))
        let_go(self.graph.children_offsets, self.graph.children, self.graph.edge_flags)
        return got

    def children(self, parents: NDArray[np.uint32]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], Bits]]:
        """Give the children that matter, in blocks: place of the parent, node, bits that may come along the edge."""
        children, flags = np.asarray(self.graph.children), np.asarray(self.graph.edge_flags)
        for owners, edges in edge_blocks(np.asarray(self.graph.children_offsets), parents, children, flags):
            nodes = children[edges].astype(np.int64)
            keep = np.flatnonzero(self.matters[self.traits[nodes]])
            own = flags[edges[keep]]
            counts = self.counts[own]
            keep, own = keep[counts], own[counts]
            yield owners[keep], nodes[keep], self.edge_bits[own]

    def sort_out(self, got: Hop, nodes: NDArray[np.int64], gained: Bits) -> None:
        """Part artifacts from nodes to walk on from; by the rules of one concept a node may be both."""
        traits = self.traits[nodes]
        artifact = self.artifact_bits[traits] & gained
        some = np.flatnonzero(artifact)
        artifact[some] &= ~self.through.at(nodes[some].astype(np.uint32))
        onward = np.where((traits & HAS_CHILDREN) != 0, gained & (~artifact | self.expand), 0).astype(gained.dtype)
        for kept, bits in ((got.found, artifact), (got.onward, onward)):
            some = np.flatnonzero(bits)
            kept.append((nodes[some].astype(np.uint32), bits[some]))


@dataclass(frozen=True, slots=True)
class Pass:
    """What up to 64 roots reach: `walked[h]` are the nodes walked on from after h hops, `found[h]` artifacts."""

    bits: RootBits
    walked: tuple[Arrivals, ...]
    found: tuple[Arrivals, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """A finished walk; more than 64 roots take several passes.

    `traits` tells which nodes were walked on from. `class_edges` are the edges from these to nodes with children of
    their own, as parents and children, each once.
    """

    passes: tuple[Pass, ...]
    traits: NDArray[np.uint16]
    class_edges: NodePairs


def walk(graph: Graph, searches: Sequence[Search]) -> Walk:
    """Walk from the roots of all searches together."""
    traits = traits_of(graph)
    edges: list[NodePairs] = []
    passes = [walk_once(Walker(graph, searches, bits, traits), edges) for bits in root_bits(searches)]
    nothing = np.empty(0, np.uint32)
    parents = np.concatenate([nothing, *(parents for parents, _ in edges)])
    children = np.concatenate([nothing, *(children for _, children in edges)])
    return Walk(tuple(passes), traits, (parents, children))


def walk_once(walker: Walker, edges: list[NodePairs]) -> Pass:
    """Walk hop by hop until nothing is new or no root may go further; add to the class edges."""
    bits = walker.bits
    walked, found = [walker.start()], [gather([], bits.dtype)]
    for hop in range(1, bits.most_hops + 1):
        got = walker.hop(walked[-1])
        edges += got.class_edges
        found.append(gather(got.found, bits.dtype))
        walked.append(gather(got.onward, bits.dtype).for_roots(bits.reaching(hop + 1)))
        if len(walked[-1].nodes) == 0:
            break
    return Pass(bits, tuple(walked), tuple(found))


def at_roots(bits: RootBits, values: Sequence[np.unsignedinteger]) -> Arrivals:
    """Lay a mask on each root of a pass; a node that is the root of several searches gets all of theirs."""
    return gather([(np.array(bits.roots, np.uint32), np.array(values, bits.dtype))], bits.dtype)


def groups_of(
    parents: NDArray[np.integer[Any]], children: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.integer[Any]], NDArray[np.int32]]:
    """Give the nodes of some edges, ascending, and the group of each: all of a group are below one another."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    nodes, ends = np.unique(np.concatenate([parents, children]), return_inverse=True)
    above, below = ends[: len(parents)], ends[len(parents) :]
    matrix = csr_array((np.ones(len(parents), np.int8), (below, above)), shape=(len(nodes), len(nodes)))
    return nodes, connected_components(matrix, directed=True, connection="strong")[1]


def union(masks: Sequence[int]) -> int:
    """Join masks."""
    joined = 0
    for mask in masks:
        joined |= mask
    return joined
