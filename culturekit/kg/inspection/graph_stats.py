"""Count what a graph holds: statements, labels, dangling targets, extremes, and cycles among classes."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.kg.concepts import EDGE_PROPERTIES, mask_of
from culturekit.kg.store import Graph, GraphTables, load_graph, titled
from culturekit.kg.walk import groups_of

_EXTREMES = 10  # items named on each list of extremes
_EXAMPLES, _MEMBERS = 10, 8  # cycles named, and classes of each
_EDGES_AT_ONCE = 16_000_000

# What is answered; the fields are those of `--json`.


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


def stats_lines(stats: GraphStats) -> Iterator[str]:
    """Write the numbers in lines."""
    yield f"{stats.items:,} items, {stats.statements:,} statements, {stats.nodes:,} nodes, {stats.edges:,} edges"
    yield f"{stats.dangling_targets:,} targets of statements that the dump does not describe"
    names = [field.name.replace("_", " ") for field in fields(PropertyStats)]
    yield from aligned(names, [list(map(str, astuple(each))) for each in stats.properties])
    for language in stats.languages:
        yield f"label in {language.language or 'none'}: {language.items:,} items ({language.share:.1%})"
    yield f"labels that fall back to mul: {stats.mul_share:.1%}"
    for name, extremes in (("children", stats.most_children), ("parents", stats.most_parents)):
        yield f"most {name}: {'; '.join(f'{titled(each.qid, each.label)} {each.degree:,}' for each in extremes)}"
    cycles = stats.cycles
    yield (
        f"cycles by P279: {cycles.classes:,} classes in {cycles.components:,} components, "
        f"and {cycles.self_loops:,} classes below themselves"
    )
    for cycle in cycles.largest:
        shown = ", ".join(titled(qid, label) for qid, label in cycle.members)
        rest = f" and {cycle.classes - len(cycle.members):,} more" if cycle.classes > len(cycle.members) else ""
        yield f"  {cycle.classes} classes: {shown}{rest}"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write a table, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        yield "  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True))


def graph_stats(folder: Path) -> GraphStats:
    """Count what is in a graph folder."""
    tables, graph = GraphTables(folder), load_graph(folder)
    described = np.zeros(len(graph.nodes), np.bool_)
    described[np.searchsorted(graph.nodes, tables.items.select("number").collect()["number"].to_numpy())] = True
    languages = _language_counts(tables)
    properties = _property_stats(tables, np.asarray(graph.nodes[~described]))
    return GraphStats(
        items=sum(language.items for language in languages),
        nodes=len(graph.nodes),
        statements=sum(each.statements for each in properties),
        edges=len(graph.children),
        dangling_targets=int((~described).sum()),
        properties=properties,
        languages=languages,
        mul_share=next((each.share for each in languages if each.language == "mul"), 0.0),
        most_children=_extremes(tables, graph, np.diff(graph.children_offsets)),
        most_parents=_extremes(tables, graph, np.bincount(graph.children, minlength=len(graph.nodes))),
        cycles=_class_cycles(graph, tables),
    )


def _property_stats(tables: GraphTables, undescribed: NDArray[np.uint32]) -> tuple[PropertyStats, ...]:
    """Count the statements of each property."""
    dangling = pl.LazyFrame({"value": undescribed}, schema={"value": pl.UInt32})
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


def _language_counts(tables: GraphTables) -> tuple[LanguageCount, ...]:
    """Count items by the language of their label, the most frequent first."""
    rows = tables.items.group_by("label_language").agg(items=pl.len()).collect()
    total = max(int(rows["items"].sum()), 1)
    ordered = rows.sort(["items", "label_language"], descending=[True, False], nulls_last=True)
    return tuple(LanguageCount(language, count, count / total) for language, count in ordered.iter_rows())


def _extremes(tables: GraphTables, graph: Graph, degrees: NDArray[np.int64]) -> tuple[Extreme, ...]:
    """Name the items of the highest degree, on ties the smaller numbers."""
    size = min(_EXTREMES, len(degrees))
    least = int(np.partition(degrees, -size)[-size]) if size else 0
    high = np.flatnonzero(degrees >= max(least, 1))
    first = high[np.lexsort((high, -degrees[high]))][:size]
    numbers = graph.nodes[first].tolist()
    labels = tables.labels(numbers)
    return tuple(
        Extreme(f"Q{n}", labels[n], degree) for n, degree in zip(numbers, degrees[first].tolist(), strict=True)
    )


def _class_cycles(graph: Graph, tables: GraphTables) -> Cycles:
    """Find the components of more than one class, reading the edges of P279 piece by piece."""
    mask = mask_of(("P279",), EDGE_PROPERTIES)
    places = [
        start + np.flatnonzero(graph.edge_flags[start : start + _EDGES_AT_ONCE] & mask)
        for start in range(0, len(graph.children), _EDGES_AT_ONCE)
    ]
    edges = np.concatenate([np.empty(0, np.int64), *places])
    parents = np.searchsorted(graph.children_offsets, edges, side="right") - 1
    children = graph.children[edges].astype(np.int64)
    loops = parents == children
    nodes, component = groups_of(parents[~loops], children[~loops])
    sizes = np.bincount(component)
    large = np.flatnonzero(sizes > 1)
    first = large[np.argsort(-sizes[large], kind="stable")][:_EXAMPLES]
    members = [graph.nodes[nodes[np.flatnonzero(component == each)[:_MEMBERS]]].tolist() for each in first]
    labels = tables.labels(number for numbers in members for number in numbers)
    largest = tuple(
        Cycle(int(sizes[each]), tuple((f"Q{number}", labels[number]) for number in numbers))
        for each, numbers in zip(first, members, strict=True)
    )
    return Cycles(len(large), int(sizes[large].sum()), int(loops.sum()), largest)
