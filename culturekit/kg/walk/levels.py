"""Algorithm 1 level by level over the arrays of a graph, keeping how many come through which class.

Unlike the walk that makes candidates, it keeps no path: each node remembers its place below the level before, so a
preview of a whole dump fits in memory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.store import Graph
from culturekit.kg.walk.walk_choices import WalkChoices

__all__ = ["Level", "Marks", "through", "walk_levels"]


@dataclass(frozen=True, slots=True)
class Marks:
    """Nodes by what the walk does with them, each bool (n_nodes,)."""

    excluded: NDArray[np.bool_]
    roots: NDArray[np.bool_]

    @classmethod
    def of(cls, graph: Graph, choices: WalkChoices) -> "Marks":
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
    starts = graph.children_offsets[frontier]
    lengths = graph.children_offsets[frontier + 1] - starts
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    edges = np.repeat(starts, lengths) + within
    children = graph.children[edges]
    usable = ((graph.edge_flags[edges] & edge_mask) != 0) & ~seen[children]
    above, children = np.repeat(np.arange(len(frontier), dtype=np.int32), lengths)[usable], children[usable]
    children, first = np.unique(children, return_index=True)
    return children, above[first]


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
