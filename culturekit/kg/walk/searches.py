"""What a walk looks for, and the bits that stand for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.walk.traits import VALUES

__all__ = ["RootBits", "Search", "root_bits"]

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
