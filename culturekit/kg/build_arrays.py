"""The arrays of a graph, from its items and statements as they come in the order of QIDs."""

from pathlib import Path

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
        edges = flags_of(statements, EDGE_PROPERTIES).group_by("value", "number").agg(pl.col("flags").bitwise_or())
        ordered = edges.sort("value", "number")
        self.edges.append(tuple(ordered[name].to_numpy() for name in ("value", "number", "flags")))  # type: ignore[arg-type]
        countries = flags_of(statements, COUNTRY_PROPERTIES).group_by("number").agg(pl.col("flags").bitwise_or())
        self.countries.append((countries["number"].to_numpy(), countries["flags"].to_numpy()))

    def finish(self) -> dict[str, int]:
        """Write the arrays; give the sizes of all."""
        described = joined(self.items, np.uint32)
        nodes = np.union1d(described, np.unique(joined(self.values, np.uint32)))
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
            own, number = np.unique(parents, return_counts=True)
            counts[np.searchsorted(nodes, own)] += number
        offsets = np.concatenate([[0], np.cumsum(counts)])
        save_array(self.out / "children_offsets.npy", offsets)
        children, flags = np.zeros(offsets[-1], np.int32), np.zeros(offsets[-1], np.uint16)
        filled = offsets[:-1].copy()
        for parents, numbers, bits in self.edges:
            own, first, number = np.unique(parents, return_index=True, return_counts=True)
            nodes_of_own = np.searchsorted(nodes, own)
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
