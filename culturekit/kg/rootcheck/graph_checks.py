"""Checks that need a graph: is a root there, is it a class, is it called what the config says, what lies below it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import IntegrityError
from culturekit.kg.rootcheck.findings import Finding, Named, finding
from culturekit.kg.statement_flags import EDGE_PROPERTIES, mask_of
from culturekit.kg.store import Graph, load_graph
from culturekit.storage.system_errors import raise_system_error

__all__ = ["Described", "check_against", "look_up"]

CLASSES = mask_of(["P279"], EDGE_PROPERTIES)
BOTH = mask_of(EDGE_PROPERTIES, EDGE_PROPERTIES)

IN_VAIN = {"root": "reaches nothing", "class": "cuts nothing", "item": "leaves out nothing"}


@dataclass(frozen=True, slots=True)
class Described:
    """What a graph says of the items that configs name."""

    graph: Graph
    labels: dict[int, str | None]
    stating: dict[str, set[int]]

    def has_subclasses(self, node: int) -> bool:
        """Tell whether anything is stated to be a subclass of a node."""
        span = slice(int(self.graph.children_offsets[node]), int(self.graph.children_offsets[node + 1]))
        return bool(np.any((self.graph.edge_flags[span] & CLASSES) != 0))

    def is_instance(self, number: int, node: int) -> bool:
        """Tell whether an item is an instance of something, and a class of nothing and for nobody."""
        return number in self.stating["P31"] and number not in self.stating["P279"] and not self.has_subclasses(node)


def look_up(folder: Path, numbers: Sequence[int]) -> Described:
    """Read what a graph says of some items, and nothing else of its tables."""
    graph = load_graph(folder)
    these = pl.col("number").is_in(sorted(set(numbers)))
    try:
        labels = pl.scan_parquet(folder / "items.parquet").filter(these).select("number", "label").collect()
        stated = (
            pl.scan_parquet(folder / "statements.parquet")
            .filter(these, pl.col("value").is_not_null(), pl.col("rank") != "deprecated")
            .select("number", "property")
            .collect()
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        raise_system_error(error, folder)
        raise IntegrityError("not a graph store", where=str(folder), found=str(error)) from error
    stating = {name: set(stated.filter(pl.col("property") == name)["number"].to_list()) for name in EDGE_PROPERTIES}
    return Described(graph, dict(labels.iter_rows()), stating)


def check_against(described: Described, named: Sequence[Named]) -> Iterator[Finding]:
    """Check the items that one config names against a graph."""
    for each in named:
        yield from check_item(described, each)
    roots = list({each.qid: each for each in reversed(named) if each.role == "root"}.values())[::-1]
    cut = {each.number for each in named if each.role == "class"}
    yield from check_overlaps(described.graph, roots, cut)


def check_item(described: Described, each: Named) -> Iterator[Finding]:
    """Check one item."""
    node = described.graph.find(each.number)
    if node is None:
        message = f"the graph never mentions {each.qid}: it {IN_VAIN[each.role]}"
        yield finding("warning" if each.role == "item" else "error", "unknown", each, message)
        return
    if each.role != "item" and described.is_instance(each.number, node):
        alone = described.graph.children_offsets[node] == described.graph.children_offsets[node + 1]
        message = f"{each.qid}{called(described, each)} is an instance, no class, and has no subclasses"
        yield finding(
            "error" if alone else "warning", "instance", each, message + (" and no instances" if alone else "")
        )
    if each.number not in described.labels:
        yield finding("warning", "undescribed", each, f"the graph mentions {each.qid} and does not describe it")
    label = described.labels.get(each.number)
    if label is not None and each.label is not None and label.casefold() != each.label.strip().casefold():
        yield finding("warning", "label", each, f"{each.qid} is called {label!r}, not {each.label!r}")


def called(described: Described, each: Named) -> str:
    """Add the label of an item, where there is one."""
    label = described.labels.get(each.number)
    return f" ({label})" if label else ""


def check_overlaps(graph: Graph, roots: Sequence[Named], cut: set[int]) -> Iterator[Finding]:
    """Say which roots lie below others within their hops, and which lie below each other."""
    nodes = {each.qid: node for each in roots if (node := graph.find(each.number)) is not None}
    blocked = np.zeros(len(graph.nodes), np.bool_)
    blocked[[node for number in cut if (node := graph.find(number)) is not None]] = True
    here = [each for each in roots if each.qid in nodes]
    below = {upper.qid: hops_to(graph, nodes[upper.qid], upper.hops, nodes, blocked) for upper in here}
    for lower in here:
        above = [upper for upper in here if upper is not lower and lower.qid in below[upper.qid]]
        mutual = [upper for upper in above if upper.qid in below[lower.qid]]
        if over := [f"{upper.qid} (line {upper.line}, hop {below[upper.qid][lower.qid]})" for upper in above]:
            yield finding("warning", "overlap", lower, f"{lower.qid} is below other roots already: {', '.join(over)}")
        if same := [f"{upper.qid} (line {upper.line})" for upper in mutual if upper.line < lower.line]:
            yield finding("warning", "cycle", lower, f"{lower.qid} is below and above these roots: {', '.join(same)}")


def hops_to(graph: Graph, start: int, hops: int, wanted: dict[str, int], blocked: NDArray[np.bool_]) -> dict[str, int]:
    """Find which wanted nodes lie below a node, and at which hop first."""
    seen = blocked.copy()
    seen[start] = True
    frontier = np.array([start], np.int64)
    found: dict[str, int] = {}
    for hop in range(1, hops + 1):
        starts = graph.children_offsets[frontier]
        lengths = graph.children_offsets[frontier + 1] - starts
        edges = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        children = np.unique(graph.children[edges[(graph.edge_flags[edges] & BOTH) != 0]])
        frontier = children[~seen[children]].astype(np.int64)
        seen[frontier] = True
        found |= {qid: hop for qid, node in wanted.items() if qid not in found and node in frontier}
        if len(frontier) == 0:
            break
    return found
