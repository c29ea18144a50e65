"""The arrays of a graph, from its items and statements as they come in the order of QIDs."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.kg.statement_flags import COUNTRY_PROPERTIES, EDGE_PROPERTIES, flags_of
from culturekit.storage.arrays import save_array

__all__ = ["ArrayBuilder"]


class ArrayBuilder:
    """Collects what the arrays need, and writes them.

    Edges are kept as numbers of items, 10 bytes each, until all nodes are known.
    """

    def __init__(self, out: Path) -> None:
        """Begin with nothing."""
        self.out = out
        self.items: list[NDArray[np.uint32]] = []
        self.values: list[NDArray[np.uint32]] = []
        self.edges: list[tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint16]]] = []
        self.countries: list[tuple[NDArray[np.uint32], NDArray[np.uint16]]] = []
        self.statements = 0

    def add_items(self, numbers: NDArray[np.uint32]) -> None:
        """Take the numbers of items that the dump describes, ascending."""
        self.items.append(numbers.copy())

    def add_statements(self, statements: pl.DataFrame) -> None:
        """Take the statements of some items."""
        self.statements += statements.height
        self.values.append(statements["value"].drop_nulls().unique().sort().to_numpy())
        edges = flags_of(statements, EDGE_PROPERTIES)
        self.edges.append(united(*(edges[name].to_numpy() for name in ("value", "number", "flags"))))
        countries = flags_of(statements, COUNTRY_PROPERTIES).group_by("number").agg(pl.col("flags").bitwise_or())
        self.countries.append((countries["number"].to_numpy(), countries["flags"].to_numpy()))

    def finish(self) -> dict[str, int]:
        """Write the arrays; give the sizes of all."""
        described = joined(self.items, np.uint32)
        nodes = joined([*self.items, *self.values], np.uint32)
        nodes.sort()
        nodes = nodes[starts(nodes)]
        save_array(self.out / "nodes.npy", nodes)
        self.write_countries(nodes)
        edges = self.write_edges(nodes)
        return {"items": len(described), "statements": self.statements, "nodes": len(nodes), "edges": edges}

    def write_countries(self, nodes: NDArray[np.uint32]) -> None:
        """Mark the nodes that state a country."""
        flags = np.zeros(len(nodes), np.uint16)
        for numbers, bits in self.countries:
            flags[np.searchsorted(nodes, numbers)] |= bits
        save_array(self.out / "country_flags.npy", flags)

    def write_edges(self, nodes: NDArray[np.uint32]) -> int:
        """Write the inverse class edges once each, by parent and child, in two passes: count, then fill."""
        counts = np.zeros(len(nodes), np.int64)
        for parents, _, _ in self.edges:
            first = starts(parents)
            counts[np.searchsorted(nodes, parents[first])] += np.diff(first, append=len(parents))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        save_array(self.out / "children_offsets.npy", offsets)
        children, flags = np.zeros(offsets[-1], np.int32), np.zeros(offsets[-1], np.uint16)
        filled = offsets[:-1].copy()
        for parents, numbers, bits in self.edges:
            first = starts(parents)
            number = np.diff(first, append=len(parents))
            nodes_of_own = np.searchsorted(nodes, parents[first])
            within = np.arange(len(parents)) - np.repeat(first, number)
            places = np.repeat(filled[nodes_of_own], number) + within
            children[places] = np.searchsorted(nodes, numbers)
            flags[places] = bits
            filled[nodes_of_own] += number
        save_array(self.out / "children.npy", children)
        save_array(self.out / "edge_flags.npy", flags)
        return len(children)


def joined(arrays: list[NDArray[np.uint32]], dtype: type[np.uint32]) -> NDArray[np.uint32]:
    """Join arrays; none give an empty one."""
    return np.concatenate(arrays) if arrays else np.empty(0, dtype)


def starts(ordered: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Give the places at which a new value begins."""
    new = np.ones(len(ordered), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(new)


def united(
    parents: NDArray[np.uint32], children: NDArray[np.uint32], flags: NDArray[np.uint16]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint16]]:
    """Order edges by parent and child; those that are alike become one with the flags of all."""
    edges = parents.astype(np.uint64) << 32 | children
    order = np.argsort(edges)
    edges, flags = edges[order], flags[order]
    first = starts(edges)
    both = edges[first]
    together = np.bitwise_or.reduceat(flags, first) if len(first) else flags
    return (both >> 32).astype(np.uint32), both.astype(np.uint32), together
