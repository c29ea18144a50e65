"""The classes that a walk may go through, and Algorithm 1 level by level, with how many come through which.

Unlike the walk that makes candidates, it keeps no path: each node remembers its place below the level before, so a
preview of a whole dump fits in memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.concepts import Concept
from culturekit.kg.countries import by_qid, country
from culturekit.kg.store import Graph

__all__ = ["Level", "Marks", "WalkChoices", "choices_of", "country_key", "through", "walk_levels"]


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
