"""Nodes with the bits of the roots that reach them for the first time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arrivals", "deliver", "gather"]

Bits = NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What one hop brings: nodes uint32 (n,), ascending, once each, and the bits of the roots that are new there."""

    nodes: NDArray[np.uint32]
    bits: Bits

    def of(self, bits: np.unsignedinteger) -> "Arrivals":
        """Keep what concerns some roots."""
        own = self.bits & bits
        some = own != 0
        return Arrivals(self.nodes[some], own[some])

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
