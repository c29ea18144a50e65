"""The graph on disk: tables of items and statements, and memory-mapped arrays to walk on.

A node is any item that the dump describes or points to; nodes are numbered by ascending QID.

| file | holds |
|---|---|
| `items.parquet`, `statements.parquet` | what the dump says, with the line it says it in |
| `nodes.npy` | uint32 (n_nodes,), the QID numbers, ascending |
| `children_offsets.npy` | int64 (n_nodes + 1,): the children of node i are `children[offsets[i]:offsets[i + 1]]` |
| `children.npy` | int32 (n_edges,): nodes with a P31 or P279 statement about the parent, ascending |
| `edge_flags.npy` | uint16 (n_edges,): properties, ranks and ends of the statements, see `statement_flags` |
| `country_flags.npy` | uint16 (n_nodes,): the same of the statements of a country |
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import IntegrityError
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES, EDGE_PROPERTIES, flags_of
from culturekit.records.schemas import ITEMS, STATEMENTS
from culturekit.storage.arrays import save_array
from culturekit.storage.tables import write_table

__all__ = ["Graph", "build_store", "load_graph"]

ARRAYS = ("nodes", "children_offsets", "children", "edge_flags", "country_flags")


@dataclass(frozen=True, slots=True)
class Graph:
    """The arrays of a store."""

    nodes: NDArray[np.uint32]
    children_offsets: NDArray[np.int64]
    children: NDArray[np.int32]
    edge_flags: NDArray[np.uint16]
    country_flags: NDArray[np.uint16]

    def find(self, qid_number: int) -> int | None:
        """Find the node of a QID number; None when the dump never mentions it."""
        index = int(np.searchsorted(self.nodes, np.uint32(qid_number)))
        return index if index < len(self.nodes) and int(self.nodes[index]) == qid_number else None


def build_store(out: Path, items: pl.DataFrame, statements: pl.DataFrame) -> dict[str, int]:
    """Write the tables and arrays of a graph; give their sizes."""
    write_table(out, ITEMS, items)
    write_table(out, STATEMENTS, statements)
    nodes = np.union1d(items["number"].to_numpy(), statements["value"].drop_nulls().to_numpy()).astype(np.uint32)
    edges = edge_table(statements, nodes)
    counts_of_parents = np.bincount(edges["parent"].to_numpy(), minlength=len(nodes))
    save_array(out / "nodes.npy", nodes)
    save_array(out / "children_offsets.npy", np.concatenate([[0], np.cumsum(counts_of_parents)]).astype(np.int64))
    save_array(out / "children.npy", edges["child"].to_numpy().astype(np.int32))
    save_array(out / "edge_flags.npy", edges["flags"].to_numpy().astype(np.uint16))
    save_array(out / "country_flags.npy", country_flags(statements, nodes))
    return {"items": items.height, "statements": statements.height, "nodes": len(nodes), "edges": edges.height}


def edge_table(statements: pl.DataFrame, nodes: NDArray[np.uint32]) -> pl.DataFrame:
    """List the inverse class edges once each, by parent and child, with the flags of the statements that make them."""
    classes = flags_of(statements, EDGE_PROPERTIES)
    return (
        pl.DataFrame(
            {
                "parent": np.searchsorted(nodes, classes["value"].to_numpy()),
                "child": np.searchsorted(nodes, classes["number"].to_numpy()),
                "flags": classes["flags"],
            }
        )
        .group_by("parent", "child")
        .agg(pl.col("flags").bitwise_or())
        .sort("parent", "child")
    )


def country_flags(statements: pl.DataFrame, nodes: NDArray[np.uint32]) -> NDArray[np.uint16]:
    """Mark the nodes that state a country."""
    flags = np.zeros(len(nodes), np.uint16)
    stated = flags_of(statements, COUNTRY_PROPERTIES).group_by("number").agg(pl.col("flags").bitwise_or())
    flags[np.searchsorted(nodes, stated["number"].to_numpy())] = stated["flags"].to_numpy()
    return flags


def load_graph(folder: Path) -> Graph:
    """Open the arrays of a finished graph folder without reading them."""
    try:
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ARRAYS}
    except (FileNotFoundError, ValueError) as error:
        raise IntegrityError(
            "not a graph store", where=str(folder), found=str(error), hint="Make it with: culturekit kg ingest"
        ) from error
    return Graph(**arrays)
