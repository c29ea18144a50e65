"""Parts to the finished store: items and statements in order, and the arrays to walk on."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.kg.item_batches import part_schema
from culturekit.kg.splice import Parts
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES, EDGE_PROPERTIES, flags_of
from culturekit.records.schemas import ITEMS, STATEMENTS
from culturekit.storage.arrays import save_array
from culturekit.storage.tables import write_table

__all__ = ["build_arrays", "build_store"]


def build_store(out: Path, parts: Sequence[Parts], scratch: Path) -> tuple[dict[str, int], int]:
    """Write the tables and arrays of a graph; give their sizes, and how many lines repeated an item."""
    items, duplicates = unique_items(gathered(parts, "items"))
    statements = gathered(parts, "statements")
    kept = statements.join(items.select("number", "file", "line"), on=["number", "file", "line"], how="semi")
    write_table(out, ITEMS, items)
    write_table(out, STATEMENTS, kept.drop("file", "line"))
    return build_arrays(out, items, kept), duplicates


def gathered(parts: Sequence[Parts], table: str) -> pl.DataFrame:
    """Join the parts of all runs, their places made those of the files."""
    frames = [
        in_place(pl.read_parquet(part.folder / f"{table}-{number:05d}.parquet"), part)
        for part in parts
        for number in range(part.count)
    ]
    return pl.concat(frames) if frames else pl.DataFrame(schema=part_schema(table))


def in_place(frame: pl.DataFrame, part: Parts) -> pl.DataFrame:
    """Number lines and members in the file, and count offsets from the beginning of the member."""
    frame = frame.with_columns(line=pl.col("line") + part.lines)
    if "member" not in frame.columns:
        return frame
    first = pl.when(pl.col("member") == 0).then(part.offset).otherwise(0).cast(pl.UInt64)
    return frame.with_columns(offset=pl.col("offset") + first, member=pl.col("member") + part.members)


def unique_items(items: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Keep the first line of each item; give the items in the order of their numbers, and how many were extra."""
    ordered = items.sort("number", "file", "line")
    unique = ordered.unique("number", keep="first", maintain_order=True)
    return unique, ordered.height - unique.height


def build_arrays(out: Path, items: pl.DataFrame, statements: pl.DataFrame) -> dict[str, int]:
    """Write the arrays of a graph; give the sizes of all."""
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
