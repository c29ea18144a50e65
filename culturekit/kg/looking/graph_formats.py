"""A neighbourhood in formats that other tools read: N-Triples, GraphML, node-link JSON."""

import re
from collections.abc import Callable, Iterator, Mapping
from xml.sax.saxutils import escape, quoteattr

import orjson

from culturekit.kg.looking.neighbourhood import Neighbour, Neighbourhood, StatedEdge
from culturekit.records.choices import GraphFormat

__all__ = ["FORMATS", "graphml", "node_link", "ntriples"]

ENTITY = "http://www.wikidata.org/entity/"
DIRECT = "http://www.wikidata.org/prop/direct/"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"

SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that no XML 1.0 document can hold, not even escaped."""

NODE_KEYS = {"label": "string", "label_language": "string", "description": "string", "hop": "int"}
EDGE_KEYS = {"property": "string", "rank": "string", "qualified": "boolean", "ended": "boolean", "truthy": "boolean"}


def ntriples(around: Neighbourhood) -> Iterator[str]:
    """Write truthy statements as `wdt:` triples and labels as rdfs:label, one line each."""
    for item in around.items:
        if item.label is not None:
            yield f"<{ENTITY}Q{item.number}> <{LABEL}> {literal(item.label, item.label_language)} .\n"
    direct = {(edge.subject, edge.property, edge.value) for edge in around.edges if edge.truthy}
    for subject, name, value in sorted(direct):
        yield f"<{ENTITY}Q{subject}> <{DIRECT}{name}> <{ENTITY}Q{value}> .\n"


def literal(text: str, language: str | None) -> str:
    """Write a text as a literal with its language."""
    escaped = "".join(SHORT.get(c) or (f"\\u{ord(c):04X}" if c < " " or c == "\x7f" else c) for c in text)
    return f'"{escaped}"@{language}' if language else f'"{escaped}"'


def node_link(around: Neighbourhood) -> Iterator[str]:
    """Write node-link JSON, which networkx reads with `node_link_graph(data, edges="edges")`."""
    data = {
        "directed": True,
        "multigraph": True,
        "graph": {"around": f"Q{around.around}"},
        "nodes": [{"id": f"Q{item.number}", **item_data(item)} for item in around.items],
        "edges": [
            {"source": f"Q{e.subject}", "target": f"Q{e.value}", "key": f"{e.property}-{e.position}", **edge_data(e)}
            for e in around.edges
        ],
    }
    yield orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n"


def graphml(around: Neighbourhood) -> Iterator[str]:
    """Write GraphML; characters that XML cannot hold become U+FFFD."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for kind, keys in (("node", NODE_KEYS), ("edge", EDGE_KEYS)):
        for name, typed in keys.items():
            yield f'  <key id="{kind}-{name}" for="{kind}" attr.name="{name}" attr.type="{typed}"/>\n'
    yield '  <graph edgedefault="directed">\n'
    for item in around.items:
        yield f'    <node id="Q{item.number}">{"".join(data_elements("node", item_data(item)))}</node>\n'
    for edge in around.edges:
        key = quoteattr(f"Q{edge.subject}-{edge.property}-{edge.position}")
        ends = f'source="Q{edge.subject}" target="Q{edge.value}"'
        yield f"    <edge id={key} {ends}>{''.join(data_elements('edge', edge_data(edge)))}</edge>\n"
    yield "  </graph>\n</graphml>\n"


def item_data(item: Neighbour) -> dict[str, object]:
    """Give what is known of an item; what is not is left out."""
    data = {name: getattr(item, name) for name in NODE_KEYS}
    return {name: value for name, value in data.items() if value is not None}


def edge_data(edge: StatedEdge) -> dict[str, object]:
    """Give what is known of a statement."""
    return {name: getattr(edge, name) for name in EDGE_KEYS}


def data_elements(kind: str, data: Mapping[str, object]) -> Iterator[str]:
    """Write the data of a node or an edge."""
    for name, value in data.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        written = escape(NOT_XML.sub("\ufffd", text), {"\r": "&#13;"})
        yield f'<data key="{kind}-{name}">{written}</data>'


FORMATS: Mapping[GraphFormat, Callable[[Neighbourhood], Iterator[str]]] = {
    "ntriples": ntriples,
    "graphml": graphml,
    "node-link": node_link,
}
