"""What a graph holds in numbers: statements, labels, dangling targets, extremes, and cycles among classes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.kg.concepts import EDGE_PROPERTIES, mask_of
from culturekit.kg.store import Graph, GraphTables, load_graph
from culturekit.kg.walk.walk import groups_of

EXTREMES = 10
"""How many items are named on each list of extremes."""

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


@dataclass(frozen=True, slots=True)
class PropertyStats:
    """The statements of one property; a dangling one points to an item that the dump does not describe."""

    property: str
    statements: int
    preferred: int
    normal: int
    deprecated: int
    somevalue: int
    novalue: int
    without_item: int
    qualified: int
    ended: int
    dangling: int


@dataclass(frozen=True, slots=True)
class LanguageCount:
    """How many items have their label in a language; None stands for items without a label."""

    language: str | None
    items: int
    share: float


@dataclass(frozen=True, slots=True)
class Extreme:
    """An item and its degree."""

    qid: str
    label: str | None
    degree: int


@dataclass(frozen=True, slots=True)
class GraphStats:
    """The numbers of a graph; `edges` join two items once, whatever the number of statements."""

    items: int
    nodes: int
    statements: int
    edges: int
    dangling_targets: int
    properties: tuple[PropertyStats, ...]
    languages: tuple[LanguageCount, ...]
    mul_share: float
    most_children: tuple[Extreme, ...]
    most_parents: tuple[Extreme, ...]
    cycles: Cycles


def graph_stats(folder: Path) -> GraphStats:
    """Count what is in a graph folder."""
    tables, graph = GraphTables(folder), load_graph(folder)
    described = described_nodes(tables, graph)
    languages = language_counts(tables)
    items = sum(language.items for language in languages)
    properties = property_stats(tables, graph, described)
    degrees = np.diff(graph.children_offsets), np.bincount(graph.children, minlength=len(graph.nodes))
    return GraphStats(
        items=items,
        nodes=len(graph.nodes),
        statements=sum(each.statements for each in properties),
        edges=len(graph.children),
        dangling_targets=int((~described).sum()),
        properties=properties,
        languages=languages,
        mul_share=next((each.share for each in languages if each.language == "mul"), 0.0),
        most_children=extremes(tables, graph, degrees[0]),
        most_parents=extremes(tables, graph, degrees[1]),
        cycles=class_cycles(graph, tables),
    )


def described_nodes(tables: GraphTables, graph: Graph) -> NDArray[np.bool_]:
    """Mark the nodes that the dump describes, bool (n_nodes,)."""
    described = np.zeros(len(graph.nodes), np.bool_)
    numbers = tables.items.select("number").collect().get_column("number").to_numpy()
    described[np.searchsorted(graph.nodes, numbers)] = True
    return described


def property_stats(tables: GraphTables, graph: Graph, described: NDArray[np.bool_]) -> tuple[PropertyStats, ...]:
    """Count the statements of each property."""
    dangling = pl.LazyFrame({"value": np.asarray(graph.nodes[~described])}, schema={"value": pl.UInt32})
    rank, snak = pl.col("rank"), pl.col("snak")
    counted = tables.statements.group_by("property").agg(
        statements=pl.len(),
        **{name: (rank == name).sum() for name in ("preferred", "normal", "deprecated")},
        **{name: (snak == name).sum() for name in ("somevalue", "novalue")},
        without_item=((snak == "value") & pl.col("value").is_null()).sum(),
        qualified=pl.col("qualified").sum(),
        ended=pl.col("ended").sum(),
    )
    loose = tables.statements.join(dangling, on="value", how="semi").group_by("property").agg(dangling=pl.len())
    rows = counted.join(loose, on="property", how="left").with_columns(pl.col("dangling").fill_null(0))
    return tuple(PropertyStats(**row) for row in rows.sort("property").collect().iter_rows(named=True))


def language_counts(tables: GraphTables) -> tuple[LanguageCount, ...]:
    """Count items by the language of their label, the most frequent first."""
    rows = tables.items.group_by("label_language").agg(items=pl.len()).collect()
    total = max(int(rows["items"].sum()), 1)
    ordered = rows.sort(["items", "label_language"], descending=[True, False], nulls_last=True)
    return tuple(LanguageCount(language, count, count / total) for language, count in ordered.iter_rows())


def extremes(tables: GraphTables, graph: Graph, degrees: NDArray[np.int64]) -> tuple[Extreme, ...]:
    """Name the items of the highest degree, on ties the smaller numbers."""
    size = min(EXTREMES, len(degrees))
    if size == 0:
        return ()
    least = np.partition(degrees, -size)[-size]
    high = np.flatnonzero(degrees >= max(int(least), 1))
    first = high[np.lexsort((high, -degrees[high]))][:size]
    labels = tables.labels(int(graph.nodes[node]) for node in first)
    return tuple(
        Extreme(f"Q{number}", labels[number], int(degrees[node]))
        for node in first
        for number in [int(graph.nodes[node])]
    )


def class_cycles(graph: Graph, tables: GraphTables) -> Cycles:
    """Find the components of more than one class."""
    parents, children = subclass_edges(graph)
    loops = parents == children
    nodes, component = groups_of(parents[~loops], children[~loops])
    sizes = np.bincount(component)
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
