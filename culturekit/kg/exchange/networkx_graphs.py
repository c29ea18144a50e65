"""A neighbourhood as a graph of networkx: GraphML and node-link JSON, written and read.

Items are nodes named by QID, statements are edges, parallel ones included.
"""

import io
import json
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any

import networkx

from culturekit.errors import UsageError
from culturekit.kg.looking.neighbourhood import Neighbour, Neighbourhood, StatedEdge
from culturekit.kg.qids import number_of_item
from culturekit.storage.foreign_text import without_halves

__all__ = ["as_graphml", "as_node_link", "from_graphml", "from_networkx", "from_node_link", "networkx_graph"]

NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that no XML 1.0 document can hold, not even escaped."""

TEXTS = ("label", "label_language", "description")
NODE_KEYS = {**dict.fromkeys(TEXTS, str), "hop": int}
EDGE_KEYS = ("property", "rank", "qualified", "ended", "truthy")
PROPERTY = re.compile(r"^P[1-9][0-9]{0,9}\Z")
RANKS = ("preferred", "normal", "deprecated")
POSITION = re.compile(r"-([0-9]{1,5})\Z")
LAST_POSITION = 2**16 - 1
"""What a graph store can hold."""


def networkx_graph(around: Neighbourhood) -> "networkx.MultiDiGraph[str]":
    """Give a neighbourhood to networkx; what is not known of an item is left out."""
    graph = networkx.MultiDiGraph(around=f"Q{around.around}")
    for item in around.items:
        known = {name: getattr(item, name) for name in NODE_KEYS}
        graph.add_node(f"Q{item.number}", **{name: value for name, value in known.items() if value is not None})
    for edge in around.edges:
        stated = {name: getattr(edge, name) for name in EDGE_KEYS}
        graph.add_edge(f"Q{edge.subject}", f"Q{edge.value}", f"{edge.property}-{edge.position}", **stated)
    return graph


def as_node_link(around: Neighbourhood) -> bytes:
    """Write node-link JSON, which networkx reads with `node_link_graph(data, edges="edges")`."""
    data = networkx.node_link_data(networkx_graph(around), edges="edges")
    return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")


def as_graphml(around: Neighbourhood) -> bytes:
    """Write GraphML; characters that XML cannot hold become U+FFFD."""
    graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    linked = networkx_graph(around)
    for node, known in linked.nodes(data=True):
        graph.add_node(node, **{name: inert(value) for name, value in known.items()})
    for subject, value, key, stated in linked.edges(keys=True, data=True):
        graph.add_edge(subject, value, f"{subject}-{key}", **stated)  # GraphML wants ids that no other edge has
    written = io.BytesIO()
    networkx.write_graphml_xml(graph, written, prettyprint=True)
    return written.getvalue().replace(b"\r", b"&#13;")  # else a reader of XML makes a line feed of it


def inert(value: object) -> object:
    """Replace what XML cannot hold."""
    return NOT_XML.sub("\ufffd", value) if isinstance(value, str) else value


def from_node_link(content: bytes) -> Neighbourhood:
    """Read node-link JSON, the statements under `edges`, or under `links` as older versions of networkx wrote them."""
    data = json.loads(content)
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list):
        raise ValueError("no object with nodes")
    return from_networkx(networkx.node_link_graph(data, edges="edges" if "edges" in data else "links"))


def from_graphml(content: bytes) -> Neighbourhood:
    """Read GraphML."""
    return from_networkx(networkx.read_graphml(io.BytesIO(content), force_multigraph=True))


def from_networkx(graph: "networkx.Graph[str]") -> Neighbourhood:
    """Read any directed graph of networkx whose nodes are QIDs and whose edges have a `property`.

    An edge without `rank` is of normal rank; one without `qualified` or `ended` is neither. A node of which nothing
    is known, and that says nothing, counts as mentioned only.
    """
    if not graph.is_directed():
        raise UsageError("the graph has no directions", expected="a directed graph")
    items = [neighbour(node, known) for node, known in graph.nodes(data=True)]
    keyed = graph.edges(keys=True, data=True) if graph.is_multigraph() else with_keys(graph)
    rows = sorted(statement(*edge) for edge in keyed)
    return Neighbourhood(0, tuple(sorted(items, key=lambda item: item.number)), placed(rows), 0)


def with_keys(graph: "networkx.Graph[str]") -> Sequence[tuple[str, str, int, Mapping[str, Any]]]:
    """Give the edges of a graph without parallel ones as if it could have them."""
    return [(subject, value, 0, stated) for subject, value, stated in graph.edges(data=True)]


def neighbour(node: object, known: Mapping[str, Any]) -> Neighbour:
    """Read a node."""
    for name, kind in NODE_KEYS.items():
        if known.get(name) is not None and not isinstance(known[name], kind):
            raise UsageError("not what a node can say", where=f"{node}: {name}", found=repr(known[name])[:60])
    label, language, description = (known.get(name) and without_halves(known[name]) for name in TEXTS)
    return Neighbour(number_of_item(str(node)), label, language if label else None, description, known.get("hop"))


def statement(
    subject: object, value: object, key: object, stated: Mapping[str, Any]
) -> tuple[int, str, int, int, str, bool, bool]:
    """Read an edge: subject, property, position, value, rank, qualified, ended."""
    where, name = f"{subject} -> {value}", stated.get("property")
    if not isinstance(name, str) or not PROPERTY.match(name):
        raise UsageError("an edge needs a property", where=where, expected="property: P31", found=repr(name)[:60])
    rank, qualified, ended = stated.get("rank", "normal"), stated.get("qualified", False), stated.get("ended", False)
    if rank not in RANKS:
        raise UsageError("not a rank", where=where, expected=" or ".join(RANKS), found=repr(rank)[:60])
    if not isinstance(qualified, bool) or not isinstance(ended, bool):
        raise UsageError("qualified and ended are true or false", where=where)
    found = POSITION.search(str(key))
    position = int(found[1]) if found and int(found[1]) <= LAST_POSITION else 0
    return number_of_item(str(subject)), name, position, number_of_item(str(value)), rank, qualified, ended


def placed(rows: Sequence[tuple[int, str, int, int, str, bool, bool]]) -> tuple[StatedEdge, ...]:
    """Give each statement of an item and property a place of its own, the one that its key names where it is free."""
    edges: list[StatedEdge] = []
    for (subject, name), group in groupby(rows, key=lambda row: row[:2]):
        stated = list(group)
        best = "preferred" if any(row[4] == "preferred" for row in stated) else "normal"
        positions = positions_of([row[2] for row in stated], f"Q{subject}: {name}")
        for position, (_, _, _, value, rank, qualified, ended) in zip(positions, stated, strict=True):
            edges.append(StatedEdge(subject, name, position, value, rank, qualified, ended, rank == best))
    return tuple(edges)


def positions_of(wanted: Sequence[int], where: str) -> Sequence[int]:
    """Move positions that are taken up to the next; where they would not end in time, count from 0 instead."""
    if len(wanted) > LAST_POSITION + 1:
        most = f"{LAST_POSITION + 1:,} at most"
        raise UsageError("too many statements of a property", where=where, expected=most, found=f"{len(wanted):,}")
    moved = list(accumulate(wanted, lambda last, position: max(position, last + 1)))
    return range(len(wanted)) if moved[-1] > LAST_POSITION else moved
