"""Algorithm 1 from one root: breadth first along inverse P31 and P279, artifacts where a country is stated."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.store import Graph

__all__ = ["Reached", "Rules", "walk"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What a walk may follow and where it stops, as flags of the graph's arrays."""

    edge_mask: int
    country_mask: int
    blocked: NDArray[np.bool_]
    walked_through: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Reached:
    """The artifacts below a root: nodes, hops, and for each one shortest path of nodes, root first."""

    nodes: NDArray[np.int64]
    hops: NDArray[np.int64]
    paths: Sequence[tuple[int, ...]]


def walk(graph: Graph, root: int, *, hops: int, rules: Rules) -> Reached:
    """Walk from a root node.

    A frontier is kept in the order of its paths, compared from the root on by QID, so the first parent that
    reaches a child is the one on its smallest shortest path.
    """
    previous = np.full(len(graph.nodes), -1, np.int64)
    seen = rules.blocked.copy()
    seen[root] = True
    frontier = np.array([root], np.int64)
    found: list[NDArray[np.int64]] = []
    found_hops: list[int] = []
    for hop in range(1, hops + 1):
        fresh = children_of(graph, frontier, seen, previous, edge_mask=rules.edge_mask)
        seen[fresh] = True
        has_country = (graph.country_flags[fresh] & rules.country_mask) != 0
        artifact = has_country & ~rules.walked_through[fresh]
        found.append(fresh[artifact])
        found_hops += [hop] * int(artifact.sum())
        frontier = fresh[~artifact]
        if len(frontier) == 0:
            break
    nodes = np.concatenate(found) if found else np.empty(0, np.int64)
    paths = [path_to(int(node), previous, root) for node in nodes]
    return Reached(nodes, np.array(found_hops, np.int64), paths)


def children_of(
    graph: Graph,
    frontier: NDArray[np.int64],
    seen: NDArray[np.bool_],
    previous: NDArray[np.int64],
    *,
    edge_mask: int,
) -> NDArray[np.int64]:
    """Give the unseen children of a frontier in path order, and note which parent reaches each first."""
    starts, ends = graph.children_offsets[frontier], graph.children_offsets[frontier + 1]
    lengths = ends - starts
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    edges = np.repeat(starts, lengths) + within
    parents = np.repeat(frontier, lengths)
    children = graph.children[edges].astype(np.int64)
    usable = ((graph.edge_flags[edges] & edge_mask) != 0) & ~seen[children]
    parents, children = parents[usable], children[usable]
    _, first = np.unique(children, return_index=True)
    first.sort()
    previous[children[first]] = parents[first]
    fresh: NDArray[np.int64] = children[first]
    return fresh


def path_to(node: int, previous: NDArray[np.int64], root: int) -> tuple[int, ...]:
    """Follow the parents back to the root."""
    path = [node]
    while path[-1] != root:
        path.append(int(previous[path[-1]]))
    return tuple(reversed(path))
