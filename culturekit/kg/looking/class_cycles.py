"""Cycles among classes: items that are, by P279, subclasses of each other."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from culturekit.kg.graph_tables import GraphTables
from culturekit.kg.statement_flags import EDGE_PROPERTIES, mask_of
from culturekit.kg.store import Graph

__all__ = ["Cycle", "Cycles", "class_cycles"]

EXAMPLES = 10
MEMBERS = 8
EDGES_AT_ONCE = 16_000_000


@dataclass(frozen=True, slots=True)
class Cycle:
    """A strongly connected component: how many classes it has, and the first of them."""

    classes: int
    members: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Cycles:
    """Cycles by P279 statements that are not deprecated; an item that is its own subclass is counted apart."""

    components: int
    classes: int
    self_loops: int
    largest: tuple[Cycle, ...]


def class_cycles(graph: Graph, tables: GraphTables) -> Cycles:
    """Find the components of more than one class."""
    parents, children = subclass_edges(graph)
    loops = parents == children
    parents, children = parents[~loops], children[~loops]
    nodes, ends = np.unique(np.concatenate([parents, children]), return_inverse=True)
    above, below = ends[: len(parents)], ends[len(parents) :]
    matrix = csr_array((np.ones(len(parents), np.int8), (below, above)), shape=(len(nodes), len(nodes)))
    _, component = connected_components(matrix, directed=True, connection="strong")
    sizes = np.bincount(component) if len(nodes) else np.empty(0, np.int64)
    large = np.flatnonzero(sizes > 1)
    first = large[np.argsort(-sizes[large], kind="stable")][:EXAMPLES]
    members = [graph.nodes[nodes[np.flatnonzero(component == each)[:MEMBERS]]].tolist() for each in first]
    labels = tables.labels(number for own in members for number in own)
    largest = tuple(
        Cycle(int(sizes[each]), tuple((f"Q{number}", labels[number]) for number in own))
        for each, own in zip(first, members, strict=True)
    )
    return Cycles(len(large), int(sizes[large].sum()), int(loops.sum()), largest)


def subclass_edges(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List the edges of P279, parents and children as nodes, reading the arrays piece by piece."""
    mask = mask_of(("P279",), EDGE_PROPERTIES)
    places = [
        start + np.flatnonzero(graph.edge_flags[start : start + EDGES_AT_ONCE] & mask)
        for start in range(0, len(graph.children), EDGES_AT_ONCE)
    ]
    edges = np.concatenate([np.empty(0, np.int64), *places])
    parents = np.searchsorted(graph.children_offsets, edges, side="right") - 1
    return parents, graph.children[edges].astype(np.int64)
