"""What a walk has found, as one concept sees it: each artifact once, at its smallest hop, with all its roots."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.walk.searches import Search
from culturekit.kg.walk.walk import Walk

__all__ = ["Reached", "reached_by"]

UNREACHED = np.uint8(255)


@dataclass(frozen=True, slots=True)
class Reached:
    """The artifacts of a search: nodes uint32 (n,), ascending; their smallest hops uint8 (n,).

    `nearest` is, for each, the smallest root at that hop, as its place among the roots of the search; `below[i]` are
    the places among the artifacts, ascending, of those that root i reaches.
    """

    nodes: NDArray[np.uint32]
    hops: NDArray[np.uint8]
    nearest: NDArray[np.uint16]
    below: tuple[NDArray[np.uint32], ...]

    def only(self, chosen: NDArray[np.bool_]) -> "Reached":
        """Keep some of the artifacts."""
        places = (np.cumsum(chosen) - 1).astype(np.uint32)
        below = tuple(places[own[chosen[own]]] for own in self.below)
        return Reached(self.nodes[chosen], self.hops[chosen], self.nearest[chosen], below)


def reached_by(walked: Walk, searches: Sequence[Search], number: int) -> Reached:
    """Bring together what the roots of one search reach."""
    roots = searches[number].roots
    parts = [
        (hop, root, found.for_roots(one.bits.dtype(1 << place)).nodes)
        for one in walked.passes
        for place, (own, root) in enumerate(zip(one.bits.searches, one.bits.places, strict=True))
        if own == number
        for hop, found in enumerate(one.found)
    ]
    marks = np.zeros(len(walked.traits), np.bool_)
    for _, _, found in parts:
        marks[found] = True
    nodes = np.flatnonzero(marks).astype(np.uint32)
    hops, nearest = np.full(len(nodes), UNREACHED), np.zeros(len(nodes), np.uint16)
    below: list[list[NDArray[np.uint32]]] = [[] for _ in roots]
    for hop, root, found in sorted(parts, key=lambda part: part[:2]):
        places = np.searchsorted(nodes, found)
        first = places[hops[places] == UNREACHED]
        hops[first], nearest[first] = hop, root
        below[root].append(places.astype(np.uint32))
    nothing = np.empty(0, np.uint32)
    return Reached(nodes, hops, nearest, tuple(np.sort(np.concatenate([nothing, *own])) for own in below))
