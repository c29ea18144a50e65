"""Algorithm 1 from all roots of all concepts in one pass.

Each node has a mask of the roots that have reached it. A hop hands the new bits of the frontier on to the children,
along the statements that count for each root, and forgets those that a child has already: so every root visits a
node once, at its smallest hop, and a cycle ends. Nothing is kept of a node that has neither a country nor children;
paths are found afterwards, for those who ask (see `shortest_paths`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.store import Graph
from culturekit.kg.walk.arrivals import Arrivals, gather
from culturekit.kg.walk.searches import RootBits, Search, root_bits
from culturekit.kg.walk.traits import traits_of
from culturekit.kg.walk.walker import NodePairs, Walker

__all__ = ["Pass", "Walk", "walk"]


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
        walked.append(gather(got.onward, bits.dtype).of(bits.reaching(hop + 1)))
        if len(walked[-1].nodes) == 0:
            break
    return Pass(bits, tuple(walked), tuple(found))
