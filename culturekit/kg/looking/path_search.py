"""All simple paths from roots down to an item, shortest first, searched upward from the item."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["PathCount", "distances_below", "paths_to"]

PATHS_AT_MOST = 10_000
"""How many paths are counted before it says `more`."""

STEPS_AT_MOST = 400_000
"""How many steps a search takes before it says `more`: about a second."""


@dataclass(frozen=True, slots=True)
class PathCount:
    """The first paths, root first, and how many were counted; `more` says that counting was stopped."""

    paths: tuple[tuple[int, ...], ...]
    counted: int
    more: bool


def distances_below(parents: Mapping[int, Sequence[int]], root: int) -> dict[int, int]:
    """Give the smallest number of steps from a root down to each item that has it above."""
    children: dict[int, list[int]] = {}
    for child, above in parents.items():
        for parent in above:
            children.setdefault(parent, []).append(child)
    distances = {root: 0}
    frontier = [root]
    while frontier:
        reached = {child for parent in frontier for child in children.get(parent, ()) if child not in distances}
        distances |= dict.fromkeys(reached, distances[frontier[0]] + 1)
        frontier = sorted(reached)
    return distances


def paths_to(
    item: int,
    parents: Mapping[int, Sequence[int]],
    limits: Mapping[int, int],
    *,
    show: int,
    wanted: Callable[[tuple[int, ...]], bool] = lambda path: True,
) -> PathCount:
    """Count the wanted paths from roots to an item, each within the limit of its root, and keep the first `show`.

    No item stands twice on a path. Shorter paths come first, on ties the smaller numbers from the root on.
    """
    below = [distances_below(parents, root) for root in limits]
    nearest: dict[int, int] = {}
    for distances in below:
        for node, distance in distances.items():
            nearest[node] = min(distance, nearest.get(node, distance))
    search = Search(parents, limits, nearest, STEPS_AT_MOST)
    shown: list[tuple[int, ...]] = []
    counted = 0
    for length in range(1, max(limits.values(), default=0) + 1):
        found = []
        for path in filter(wanted, search.of_length((item,), length)):
            counted += 1
            found.append(path)
            if counted >= PATHS_AT_MOST:
                search.stopped = True
        shown += sorted(found)[: show - len(shown)]
        if search.stopped:
            break
    return PathCount(tuple(shown), counted, search.stopped)


class Search:
    """A depth-first search upward that knows how far each item is from the nearest root."""

    def __init__(
        self,
        parents: Mapping[int, Sequence[int]],
        limits: Mapping[int, int],
        nearest: Mapping[int, int],
        steps: int,
    ) -> None:
        """Take the world and the allowance."""
        self.parents = parents
        self.limits = limits
        self.nearest = nearest
        self.steps = steps
        self.stopped = False

    def of_length(self, path: tuple[int, ...], length: int) -> Iterator[tuple[int, ...]]:
        """Yield the paths of exactly so many steps that end in this one, in no order that matters."""
        done = len(path) - 1
        if done == length:
            if length <= self.limits.get(path[0], 0):
                yield path
            return
        for parent in self.parents.get(path[0], ()):
            self.steps -= 1
            if self.steps < 0:
                self.stopped = True
            if self.stopped:
                return
            if parent not in path and done + 1 + self.nearest.get(parent, length) <= length:
                yield from self.of_length((parent, *path), length)
