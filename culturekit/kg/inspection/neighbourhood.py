"""The surroundings of an item: what is near it by class edges, and everything these items say."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from culturekit.core.choices import GraphDirection
from culturekit.core.errors import UsageError
from culturekit.kg.concepts import EDGE_PROPERTIES, is_truthy, mask_of
from culturekit.kg.countries import number_of_item
from culturekit.kg.store import Graph, GraphTables, among, load_graph


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An item; `hop` is None for one that is only the value of a statement."""

    number: int
    label: str | None
    label_language: str | None
    description: str | None
    hop: int | None


@dataclass(frozen=True, slots=True)
class StatedEdge:
    """A statement with an item as its value; `truthy` when it is of the best rank for its item and property."""

    subject: int
    property: str
    position: int
    value: int
    rank: str
    qualified: bool
    ended: bool
    truthy: bool


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Items in the order of their numbers, their statements, and how many items were left out for being too many."""

    around: int
    items: tuple[Neighbour, ...]
    edges: tuple[StatedEdge, ...]
    left_out: int


def neighbourhood(
    folder: Path, qid: str, *, hops: int, direction: GraphDirection = "both", most: int = 10_000
) -> Neighbourhood:
    """Collect the items within some hops of class edges, nearest first and at most `most`, and what they say.

    Class edges are P31 and P279 statements that are not deprecated. Statements of the six kept properties are
    listed whatever their rank.
    """
    tables, graph = GraphTables(folder), load_graph(folder)
    start = number_of_item(qid)
    if graph.find(start) is None:
        raise UsageError("the graph never mentions the item", where=str(folder), found=qid)
    hop_of, left_out = nearby(graph, tables, start, hops=hops, direction=direction, most=most)
    edges = edges_of(tables, sorted(hop_of))
    numbers = sorted({*hop_of, *(edge.value for edge in edges)})
    facts, labels = tables.facts(numbers), tables.labels(numbers)
    items = []
    for number in numbers:
        fact = facts.get(number)
        language = fact.label_language if fact and fact.label else ("en" if labels[number] else None)
        description = fact.description if fact else None
        items.append(Neighbour(number, labels[number], language, description, hop_of.get(number)))
    return Neighbourhood(start, tuple(items), tuple(edges), left_out)


def nearby(
    graph: Graph, tables: GraphTables, start: int, *, hops: int, direction: GraphDirection, most: int
) -> tuple[dict[int, int], int]:
    """Give the items within some hops with their hop, and how many of the last hop looked at had no room."""
    hop_of = {start: 0}
    frontier = [start]
    for hop in range(1, hops + 1):
        reached: set[int] = set()
        if direction in {"up", "both"}:
            mask = mask_of(EDGE_PROPERTIES, EDGE_PROPERTIES)
            said = tables.stated(frontier, EDGE_PROPERTIES, mask)
            reached.update(s.value for s in said if s.counts and s.value is not None)
        if direction in {"down", "both"}:
            reached.update(children_of(graph, frontier))
        fresh = sorted(reached - hop_of.keys())
        room = most - len(hop_of)
        hop_of |= dict.fromkeys(fresh[:room], hop)
        if len(fresh) > room:
            return hop_of, len(fresh) - room
        frontier = fresh
        if not frontier:
            break
    return hop_of, 0


def children_of(graph: Graph, numbers: Sequence[int]) -> set[int]:
    """Give the items below some items by class statements that are not deprecated."""
    mask = mask_of(EDGE_PROPERTIES, EDGE_PROPERTIES)
    nodes = [node for number in numbers if (node := graph.find(number)) is not None]
    _, edges = graph.edges_below(np.array(nodes, np.int64))
    kept = edges[(graph.edge_flags[edges] & mask) != 0]
    return set(np.asarray(graph.nodes[graph.children[kept]]).tolist())


def edges_of(tables: GraphTables, numbers: Sequence[int]) -> list[StatedEdge]:
    """List what items say with an item as the value."""
    columns = ("number", "property", "position", "value", "rank", "qualified", "ended")
    said = among(tables.statements, numbers).select(*columns, truthy=is_truthy())
    rows = said.filter(pl.col("value").is_not_null())
    return [StatedEdge(*row) for row in rows.sort("number", "property", "position").collect().iter_rows()]
