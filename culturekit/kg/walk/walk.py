"""Algorithm 1 from all roots of all concepts in one pass.

Each node has a mask of the roots that have reached it. A hop hands the new bits of the frontier on to the children,
along the statements that count for each root, and forgets those that a child has already: so every root visits a
node once, at its smallest hop, and a cycle ends. Nothing is kept of a node that has neither a country nor children;
paths are found afterwards, for those who ask (see `shortest_paths`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.concepts import Concept
from culturekit.kg.countries import by_qid, country
from culturekit.kg.store import Graph, edge_blocks, let_go

# The classes that a walk may go through, and Algorithm 1 level by level, with how many come through which.
#
# Unlike the walk that makes candidates, it keeps no path: each node remembers its place below the level before, so a
# preview of a whole dump fits in memory.


@dataclass(frozen=True, slots=True)
class WalkChoices:
    """Which statements count, from where and how far to walk, and what cuts the walk; items by number.

    `countries` is None where all are in scope. Where `first_country_property` has a country, no other property counts.
    """

    edge_mask: int
    country_mask: int
    limits: Mapping[int, int]
    excluded_classes: frozenset[int]
    excluded_items: frozenset[int]
    countries: frozenset[int] | None
    expand_artifacts: bool
    first_country_property: str | None

    @property
    def most_hops(self) -> int:
        """The longest way that any root allows."""
        return max(self.limits.values())

    def is_artifact(self, graph: Graph, numbers: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Tell which items state a country and are no root; what the graph does not have is none."""
        places = np.minimum(np.searchsorted(graph.nodes, numbers), len(graph.nodes) - 1)
        known = graph.nodes[places] == numbers
        stated = (graph.country_flags[places] & self.country_mask) != 0
        artifact: NDArray[np.bool_] = known & stated & ~np.isin(numbers, sorted(self.limits))
        return artifact


def choices_of(concept: Concept) -> WalkChoices:
    """Read a concept."""
    scope = None
    if concept.countries != "all":
        scope = frozenset(number_of(qid) for iso in concept.countries for qid in country(iso).qids)
    return WalkChoices(
        edge_mask=concept.edge_mask,
        country_mask=concept.country_mask,
        limits=concept.limits,
        excluded_classes=frozenset(map(number_of, concept.exclude.classes)),
        excluded_items=frozenset(map(number_of, concept.exclude.items)),
        countries=scope,
        expand_artifacts=concept.expand_artifacts,
        first_country_property="P495" if concept.country_choice == "P495-first" else None,
    )


def number_of(qid: str) -> int:
    """Read `Q42` as 42."""
    return int(qid[1:])


def country_key(number: int) -> str:
    """Name a country: its ISO code, its QID where culturekit does not know it."""
    known = by_qid().get(f"Q{number}")
    return known.iso if known else f"Q{number}"


@dataclass(frozen=True, slots=True)
class Marks:
    """Nodes by what the walk does with them, each bool (n_nodes,)."""

    excluded: NDArray[np.bool_]
    roots: NDArray[np.bool_]

    @classmethod
    def of_graph(cls, graph: Graph, choices: WalkChoices) -> "Marks":
        """Mark the nodes of a graph; what it does not have needs no mark."""
        return cls(marked(graph, choices.excluded_classes), marked(graph, choices.limits))


@dataclass(frozen=True, slots=True)
class Level:
    """What one hop reaches: nodes, int32 (n,); `above`, int32 (n,), the place of the parent among `walked` before."""

    walked: NDArray[np.int32]
    walked_above: NDArray[np.int32]
    artifacts: NDArray[np.int32]
    artifacts_above: NDArray[np.int32]


def walk_levels(graph: Graph, root: int, hops: int, choices: WalkChoices, marks: Marks) -> list[Level]:
    """Walk from a root node; level 0 is the root itself. A node comes once, below its first parent."""
    seen = marks.excluded.copy()
    seen[root] = True
    nothing = np.empty(0, np.int32)
    levels = [Level(np.array([root], np.int32), np.zeros(1, np.int32), nothing, nothing)]
    for _ in range(hops):
        children, above = fresh_children(graph, levels[-1].walked, seen, edge_mask=choices.edge_mask)
        seen[children] = True
        artifact = ((graph.country_flags[children] & choices.country_mask) != 0) & ~marks.roots[children]
        onward = ~artifact | choices.expand_artifacts
        levels.append(Level(children[onward], above[onward], children[artifact], above[artifact]))
        if len(levels[-1].walked) == 0:
            break
    return levels


def fresh_children(
    graph: Graph, frontier: NDArray[np.int32], seen: NDArray[np.bool_], *, edge_mask: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Give the unseen children of a frontier, each once, and the place of its first parent in the frontier."""
    owners, edges = graph.edges_below(frontier)
    children = graph.children[edges]
    usable = ((graph.edge_flags[edges] & edge_mask) != 0) & ~seen[children]
    children, first = np.unique(children[usable], return_index=True)
    return children, owners[usable][first].astype(np.int32)


def through(levels: Sequence[Level], hop: int) -> list[NDArray[np.int64]]:
    """Count, for each level above a hop, the artifacts of that hop that come through each of its nodes."""
    size = len(levels[hop - 1].walked)
    counts = [np.bincount(levels[hop].artifacts_above, minlength=size)]
    for level in range(hop - 1, 0, -1):
        size = len(levels[level - 1].walked)
        counts.append(np.bincount(levels[level].walked_above, weights=counts[-1], minlength=size).astype(np.int64))
    return counts[::-1]


def marked(graph: Graph, numbers: Iterable[int]) -> NDArray[np.bool_]:
    """Mark the nodes of items."""
    marks = np.zeros(len(graph.nodes), np.bool_)
    marks[[node for number in numbers if (node := graph.find(number)) is not None]] = True
    return marks


# Traits of classes and items, what a walk looks for, and the bits that stand for it.
#
# What a walk asks of a node stands in one uint16, so that one look answers it: the twelve low bits are the node's
# country flags (see `statement_flags`); above them stand HAS_CHILDREN, and WALKED, which the walk sets on every node
# whose children it has looked at.

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


Bits = NDArray[np.unsignedinteger]


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

    @property
    def most_hops(self) -> int:
        """The longest way that any root allows."""
        return max(self.hops)

    def of_search(self, search: int) -> np.unsignedinteger:
        """Give the bits of a search."""
        return self.where([own == search for own in self.searches])

    def reaching(self, hop: int) -> np.unsignedinteger:
        """Give the bits of the roots that may go as far as a hop."""
        return self.where([limit >= hop for limit in self.hops])

    def where(self, chosen: Sequence[bool]) -> np.unsignedinteger:
        """Give the bits of chosen roots."""
        return self.dtype(sum(1 << place for place, own in enumerate(chosen) if own))

    def table(self, masks: Sequence[int]) -> Bits:
        """Tabulate, for every value of some flags, the bits of the searches whose mask it meets."""
        flags = np.arange(VALUES)
        table = np.zeros(VALUES, self.dtype)
        for search in sorted(set(self.searches)):
            table[(flags & masks[search]) != 0] |= self.of_search(search)
        return table


def root_bits(searches: Sequence[Search]) -> Iterator[RootBits]:
    """Share all roots of all searches among as few passes as can be, in narrow masks where there are few."""
    everything = [
        (number, place, root, hops)
        for number, search in enumerate(searches)
        for place, (root, hops) in enumerate(zip(search.roots, search.hops, strict=True))
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
