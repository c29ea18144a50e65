"""Traits of classes and items, what a walk looks for, and the bits that stand for it.

What a walk asks of a node stands in one uint16, so that one look answers it: the twelve low bits are the node's country
flags (see `statement_flags`); above them stand HAS_CHILDREN, and WALKED, which the walk sets on every node whose
children it has looked at.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.edge_sweep import let_go
from culturekit.kg.store import Graph

__all__ = ["HAS_CHILDREN", "VALUES", "WALKED", "RootBits", "Search", "root_bits", "traits_of", "walked_nodes"]

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
