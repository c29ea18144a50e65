"""Walk Algorithm 1: from all roots of all concepts in one pass, and from one root level by level.

In the one pass each node has a mask of the roots that have reached it. A hop hands the new bits of the frontier on to
the children, along the statements that count for each root, and forgets those that a child has already: so every root
visits a node once, at its smallest hop, and a cycle ends. Nothing is kept of a node that has neither a country nor
children; paths are found afterwards, for those who ask (see `extract`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.concepts import Concept
from culturekit.kg.store import Graph, edge_blocks, let_go

# Level by level from one root, with how many come through which class.
#
# Unlike the walk that makes candidates, it keeps no path: each node remembers its parent among the level before, so a
# preview of a whole dump fits in memory.


def artifacts_among(graph: Graph, concept: Concept, numbers: Iterable[int]) -> set[int]:
    """Choose the items that state a country and are no root; what the graph does not have is none."""
    ordered = np.array(sorted(numbers), np.uint32)
    nodes = np.minimum(np.searchsorted(graph.nodes, ordered), len(graph.nodes) - 1)
    stated = (graph.country_flags[nodes] & concept.country_mask) != 0
    return set(ordered[(graph.nodes[nodes] == ordered) & stated].tolist()) - concept.limits.keys()


@dataclass(frozen=True, slots=True)
class Level:
    """What one hop reaches: nodes, int32 (n,); `above`, int32 (n,), the place of the parent among `walked` before."""

    walked: NDArray[np.int32]
    walked_above: NDArray[np.int32]
    artifacts: NDArray[np.int32]
    artifacts_above: NDArray[np.int32]


def walk_levels(
    graph: Graph,
    root: int,
    hops: int,
    *,
    edge_mask: int,
    blocked: NDArray[np.bool_],
    country_mask: int = 0,
    roots: Sequence[int] = (),
    expand: bool = False,
) -> list[Level]:
    """Walk from a root node; level 0 is the root itself. A node comes once, below its first parent.

    `blocked` (n_nodes,) are nodes that cut the walk, `roots` nodes that are never artifacts; `expand` walks on below
    artifacts.
    """
    seen = blocked.copy()
    seen[root] = True
    nothing = np.empty(0, np.int32)
    levels = [Level(np.array([root], np.int32), np.zeros(1, np.int32), nothing, nothing)]
    for _ in range(hops):
        owners, edges = graph.edges_below(levels[-1].walked)
        children = graph.children[edges]
        usable = ((graph.edge_flags[edges] & edge_mask) != 0) & ~seen[children]
        children, first = np.unique(children[usable], return_index=True)
        above = owners[usable][first].astype(np.int32)
        seen[children] = True
        artifact = ((graph.country_flags[children] & country_mask) != 0) & ~np.isin(children, roots)
        onward = ~artifact | expand
        levels.append(Level(children[onward], above[onward], children[artifact], above[artifact]))
        if len(levels[-1].walked) == 0:
            break
    return levels


def through(levels: Sequence[Level], hop: int) -> list[NDArray[np.int64]]:
    """Count, for each level above a hop, the artifacts of that hop that come through each of its nodes."""
    counts = [np.bincount(levels[hop].artifacts_above, minlength=len(levels[hop - 1].walked))]
    for level in range(hop - 1, 0, -1):
        size = len(levels[level - 1].walked)
        counts.append(np.bincount(levels[level].walked_above, weights=counts[-1], minlength=size).astype(np.int64))
    return counts[::-1]


# Traits of nodes, what a walk looks for, and the bits that stand for it.
#
# What a walk asks of a node stands in one uint16, so that one look answers it: the twelve low bits are the node's
# country flags (see `concepts.mask_of`); above them stand HAS_CHILDREN, and WALKED, which the walk sets on every node
# whose children it has looked at.

_COUNTRY_BITS = np.uint16((1 << 12) - 1)
_HAS_CHILDREN = np.uint16(1 << 15)
WALKED = np.uint16(1 << 14)
_VALUES = 1 << 16  # of a uint16: the length of a table that is looked up by traits or flags
_NODES_AT_ONCE = 1 << 22


def _traits_of(graph: Graph) -> NDArray[np.uint16]:
    """Read the traits of all nodes, block by block."""
    traits = np.empty(len(graph.nodes), np.uint16)
    for begin in range(0, len(traits), _NODES_AT_ONCE):
        end = min(begin + _NODES_AT_ONCE, len(traits))
        offsets = graph.children_offsets[begin : end + 1]
        traits[begin:end] = graph.country_flags[begin:end] & _COUNTRY_BITS
        traits[begin:end] |= (offsets[1:] > offsets[:-1]) * _HAS_CHILDREN
        let_go(graph.children_offsets, graph.country_flags)
    return traits


def walked_nodes(traits: NDArray[np.uint16]) -> NDArray[np.uint32]:
    """List the nodes whose children were looked at, ascending."""
    parts = [
        (begin + np.flatnonzero(traits[begin : begin + _NODES_AT_ONCE] & WALKED)).astype(np.uint32)
        for begin in range(0, len(traits), _NODES_AT_ONCE)
    ]
    return np.concatenate([np.empty(0, np.uint32), *parts])


_Bits: TypeAlias = NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True)
class Search:
    """The roots of one concept as nodes of a graph, ascending, how far to walk from each, and the rules.

    `edge_mask` and `country_mask` say which statements count, `blocked` are nodes that cut the walk. `literal` walks
    as Algorithm 1 is written: a root met again is a node like any other, an artifact where it has a country.
    """

    roots: tuple[int, ...]
    hops: tuple[int, ...]
    edge_mask: int
    country_mask: int
    blocked: tuple[int, ...] = ()
    expand_artifacts: bool = False
    literal: bool = False


@dataclass(frozen=True, slots=True)
class RootBits:
    """Up to 64 roots that are walked from in one pass, a bit each.

    Bit i is node `roots[i]`, which is root number `places[i]` of search number `searches[i]`; the bits of a search
    ascend with its roots.
    """

    searches: tuple[int, ...]
    places: tuple[int, ...]
    roots: tuple[int, ...]
    hops: tuple[int, ...]
    dtype: type[np.unsignedinteger]

    def of_search(self, search: int) -> np.unsignedinteger:
        """Give the bits of a search."""
        return self.where([each == search for each in self.searches])

    def where(self, chosen: Iterable[bool]) -> np.unsignedinteger:
        """Give the bits of chosen roots."""
        return self.dtype(sum(1 << bit for bit, yes in enumerate(chosen) if yes))

    def table(self, masks: Sequence[int]) -> _Bits:
        """Tabulate, for every value of some flags, the bits of the searches whose mask it meets."""
        flags = np.arange(_VALUES)
        table = np.zeros(_VALUES, self.dtype)
        for search in sorted(set(self.searches)):
            table[(flags & masks[search]) != 0] |= self.of_search(search)
        return table

    def at_roots(self, values: Sequence[np.unsignedinteger]) -> "Arrivals":
        """Lay a mask on each root; a node that is the root of several searches gets all of theirs."""
        return _gather([(np.array(self.roots, np.uint32), np.array(values, self.dtype))], self.dtype)


def _root_bits(searches: Sequence[Search]) -> Iterator[RootBits]:
    """Share all roots of all searches among as few passes as can be, in narrow masks where there are few."""
    everything = [
        (number, index, root, hops)
        for number, search in enumerate(searches)
        for index, (root, hops) in enumerate(zip(search.roots, search.hops, strict=True))
    ]
    for begin in range(0, len(everything), 64):
        part = everything[begin : begin + 64]
        dtype = next(kind for kind in (np.uint8, np.uint16, np.uint32, np.uint64) if len(part) <= kind().itemsize * 8)
        numbers, places, roots, hops = zip(*part, strict=True)
        yield RootBits(numbers, places, roots, hops, dtype)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What one hop brings: nodes uint32 (n,), ascending, once each, and the bits of the roots that are new there."""

    nodes: NDArray[np.uint32]
    bits: _Bits

    def for_roots(self, bits: np.unsignedinteger) -> "Arrivals":
        """Keep what concerns some roots."""
        new = self.bits & bits
        some = new != 0
        return Arrivals(self.nodes[some], new[some])

    def at(self, nodes: NDArray[np.uint32]) -> _Bits:
        """Look up the bits of nodes; none where a node is not among the arrivals."""
        if len(self.nodes) == 0:
            return np.zeros(len(nodes), self.bits.dtype)
        places = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
        return np.where(self.nodes[places] == nodes, self.bits[places], self.bits.dtype.type(0))


_Parts: TypeAlias = list[tuple[NDArray[np.uint32], _Bits]]


def _gather(parts: _Parts, dtype: type[np.unsignedinteger]) -> Arrivals:
    """Bring the parts of a hop together: each node once, its bits joined."""
    nodes = np.concatenate([np.empty(0, np.uint32), *(nodes for nodes, _ in parts)])
    bits = np.concatenate([np.empty(0, dtype), *(bits for _, bits in parts)])
    if len(nodes) == 0:
        return Arrivals(nodes, bits)
    order = np.argsort(nodes)
    nodes, bits = nodes[order], bits[order]
    first = np.flatnonzero(np.concatenate([[True], nodes[1:] != nodes[:-1]]))
    return Arrivals(nodes[first], np.bitwise_or.reduceat(bits, first))


def _deliver(seen: _Bits, nodes: NDArray[np.int64], bits: _Bits) -> tuple[NDArray[np.int64], _Bits]:
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


_NodePairs: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.uint32]]


@dataclass(frozen=True, slots=True)
class Pass:
    """What up to 64 roots reach: `walked[h]` are the nodes walked on from after h hops, `found[h]` artifacts."""

    bits: RootBits
    walked: tuple[Arrivals, ...]
    found: tuple[Arrivals, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """A finished walk; more than 64 roots take several passes.

    `traits` tells which nodes were walked on from. `class_edges` are the edges from these to nodes with children,
    as parents and children, uint32 (n,) each, each edge once.
    """

    passes: tuple[Pass, ...]
    traits: NDArray[np.uint16]
    class_edges: _NodePairs


def walk(graph: Graph, searches: Sequence[Search]) -> Walk:
    """Walk from the roots of all searches together."""
    traits = _traits_of(graph)
    nothing = np.empty(0, np.uint32)
    edges: list[_NodePairs] = [(nothing, nothing)]
    passes = [_Walker(graph, searches, bits, traits, edges).walk() for bits in _root_bits(searches)]
    parents, children = (np.concatenate(side) for side in zip(*edges, strict=True))
    return Walk(tuple(passes), traits, (parents, children))


class _Walker:
    """The masks and tables of one pass; `traits` and `class_edges` are shared by all passes of a walk."""

    def __init__(
        self,
        graph: Graph,
        searches: Sequence[Search],
        bits: RootBits,
        traits: NDArray[np.uint16],
        class_edges: list[_NodePairs],
    ) -> None:
        """Tabulate the rules, and mark what each search may not enter as seen."""
        self.graph, self.bits, self.traits, self.class_edges = graph, bits, traits, class_edges
        self.edge_bits = bits.table([search.edge_mask for search in searches])
        self.artifact_bits = bits.table([search.country_mask for search in searches])
        self.counts = (np.arange(_VALUES) & reduce(or_, (search.edge_mask for search in searches))) != 0
        self.matters = (self.artifact_bits != 0) | ((np.arange(_VALUES) & _HAS_CHILDREN) != 0)
        self.expand = bits.where(searches[number].expand_artifacts for number in bits.searches)
        self.special = bits.where(not searches[number].literal for number in bits.searches)
        self.through = bits.at_roots([bits.of_search(number) & self.special for number in bits.searches])
        self.seen = np.zeros(len(graph.nodes), bits.dtype)
        for number in sorted(set(bits.searches)):
            self.seen[list(searches[number].blocked)] |= bits.of_search(number)

    def walk(self) -> Pass:
        """Walk hop by hop until nothing is new or no root may go further.

        Each root is seen by itself, except where roots are nodes like any other.
        """
        bits = self.bits
        start = bits.at_roots([bits.dtype(1 << index) for index in range(len(bits.roots))])
        self.seen[start.nodes] |= start.bits & self.special
        walked, found = [start], [_gather([], bits.dtype)]
        for hop in range(1, max(bits.hops) + 1):
            artifacts, onward = self._hop(walked[-1])
            found.append(_gather(artifacts, bits.dtype))
            walked.append(_gather(onward, bits.dtype).for_roots(bits.where(limit > hop for limit in bits.hops)))
            if len(walked[-1].nodes) == 0:
                break
        return Pass(bits, tuple(walked), tuple(found))

    def _hop(self, frontier: Arrivals) -> tuple[_Parts, _Parts]:
        """Hand the bits of a frontier on to its children: artifacts, and nodes to walk on from."""
        artifacts: _Parts = []
        onward: _Parts = []
        fresh = (self.traits[frontier.nodes] & WALKED) == 0
        self.traits[frontier.nodes] |= WALKED
        for owners, nodes, allowed in self._children(frontier.nodes):
            between = fresh[owners] & ((self.traits[nodes] & _HAS_CHILDREN) != 0)
            self.class_edges.append((frontier.nodes[owners[between]], nodes[between].astype(np.uint32)))
            nodes, gained = _deliver(self.seen, nodes, frontier.bits[owners] & allowed)
            traits = self.traits[nodes]
            artifact = self.artifact_bits[traits] & gained
            some = np.flatnonzero(artifact)
            artifact[some] &= ~self.through.at(nodes[some].astype(np.uint32))
            # By the rules of one concept a node may be both an artifact and one to walk on from.
            further = np.where((traits & _HAS_CHILDREN) != 0, gained & (~artifact | self.expand), 0)
            for kept, bits in ((artifacts, artifact), (onward, further.astype(gained.dtype))):
                some = np.flatnonzero(bits)
                kept.append((nodes[some].astype(np.uint32), bits[some]))
        let_go(self.graph.children_offsets, self.graph.children, self.graph.edge_flags)
        return artifacts, onward

    def _children(self, parents: NDArray[np.uint32]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], _Bits]]:
        """Yield the children that matter, in blocks: place of the parent, node, bits that may come along the edge."""
        children, flags = np.asarray(self.graph.children), np.asarray(self.graph.edge_flags)
        for owners, edges in edge_blocks(np.asarray(self.graph.children_offsets), parents, children, flags):
            nodes = children[edges].astype(np.int64)
            keep = np.flatnonzero(self.matters[self.traits[nodes]])
            stated = flags[edges[keep]]
            counts = self.counts[stated]
            keep, stated = keep[counts], stated[counts]
            yield owners[keep], nodes[keep], self.edge_bits[stated]


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
