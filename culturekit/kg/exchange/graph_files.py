"""Neighbourhoods for other tools, and their graphs as stores: triples by rdflib, the rest by networkx."""

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import networkx
import polars as pl
from rdflib import RDFS, Graph, Literal, Namespace, URIRef
from rdflib.namespace import NamespaceManager

from culturekit.core.choices import TRIPLE_SUFFIXES, GraphFormat
from culturekit.core.errors import UsageError
from culturekit.core.foreign_text import without_halves
from culturekit.core.schemas import ITEMS, STATEMENTS
from culturekit.core.work import Outcome, Work
from culturekit.kg.countries import QID, number_of_item
from culturekit.kg.dump.build_store import NO_DUMP, store_rows
from culturekit.kg.inspection.neighbourhood import Neighbour, Neighbourhood, StatedEdge

Read = TypeVar("Read")

ENTITY = Namespace("http://www.wikidata.org/entity/")
DIRECT = Namespace("http://www.wikidata.org/prop/direct/")
PREFIXES = {"wd": ENTITY, "wdt": DIRECT, "rdfs": RDFS}
SUFFIXES: Mapping[GraphFormat, str] = {**TRIPLE_SUFFIXES, "graphml": ".graphml", "node-link": ".json"}

_MOST_BYTES = 500_000_000  # what is larger is a dump, and is read as one
_LANGUAGES = ("en", "mul")  # whose labels are taken first; then the others, by code
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # what XML 1.0 cannot hold, not even escaped
_NODE_KEYS = {"label": str, "label_language": str, "description": str, "hop": int}
_EDGE_KEYS = ("property", "rank", "qualified", "ended", "truthy")
_PROPERTY = re.compile(r"^P[1-9][0-9]{0,9}\Z")
_RANKS = ("preferred", "normal", "deprecated")
_POSITION = re.compile(r"-([0-9]{1,5})\Z")


def form_of(path: Path) -> GraphFormat:
    """Tell a format by the suffix of a file."""
    for form, suffix in SUFFIXES.items():
        if path.suffix.lower() == suffix:
            return form
    known = ", ".join(f"{suffix} ({form})" for form, suffix in SUFFIXES.items())
    raise UsageError("no format has this suffix", where=str(path), expected=known, hint="Name one with --format.")


def graph_file(around: Neighbourhood, form: GraphFormat) -> bytes:
    """Write a neighbourhood; node-link is read by `networkx.node_link_graph(data, edges="edges")`."""
    if form in TRIPLE_SUFFIXES:
        return written_rdf(rdf_graph(around), form)
    graph = networkx_graph(around)
    if form == "node-link":
        data = networkx.node_link_data(graph, edges="edges")
        return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")
    plain: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    for node, known in graph.nodes(data=True):
        texts = {name: _NOT_XML.sub("\ufffd", text) for name, text in known.items() if isinstance(text, str)}
        plain.add_node(node, **{**known, **texts})
    for subject, value, key, stated in graph.edges(keys=True, data=True):
        plain.add_edge(subject, value, f"{subject}-{key}", **stated)  # GraphML wants ids that no other edge has
    written = io.BytesIO()
    networkx.write_graphml_xml(plain, written, prettyprint=True)
    return written.getvalue().replace(b"\r", b"&#13;")  # else a reader of XML makes a line feed of it


def read_graph_file(path: Path, form: GraphFormat) -> tuple[Neighbourhood, int]:
    """Read a file that another tool wrote, or `kg export`; the number counts triples that are not about items."""
    if form in TRIPLE_SUFFIXES:
        return _parsed(path, form, lambda content: _from_rdf(_parsed_rdf(content, form)))
    return _parsed(path, form, lambda content: (from_networkx(_parsed_networkx(content, form)), 0))


def read_triples(path: Path) -> Graph:
    """Read a file of triples, by its suffix."""
    form = form_of(path)
    if form not in TRIPLE_SUFFIXES:
        raise UsageError("no triples", where=str(path), expected=" or ".join(TRIPLE_SUFFIXES.values()))
    return _parsed(path, form, lambda content: _parsed_rdf(content, form))


def _parsed(path: Path, form: GraphFormat, parse: Callable[[bytes], Read]) -> Read:
    """Parse a file, and say of one that cannot be parsed what and where."""
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path))
    if path.stat().st_size > _MOST_BYTES:
        raise UsageError(
            "too large for this", where=str(path), expected=f"{_MOST_BYTES:,} bytes at most",
            hint="A whole dump is read with: culturekit kg ingest",
        )  # fmt: skip
    try:
        return parse(path.read_bytes())
    except UsageError as error:
        where = f"{path}: {error.where}" if error.where else str(path)
        raise UsageError(error.problem, where=where, expected=error.expected, found=error.found) from error
    except Exception as error:  # each parser has errors of its own
        found = " ".join(f"{type(error).__name__} {error}".split())[:300]
        raise UsageError(f"cannot be read as {form}", where=str(path), found=found) from error


def networkx_graph(around: Neighbourhood) -> "networkx.MultiDiGraph[str]":
    """Give a neighbourhood to networkx: items by QID, statements as edges; what is not known of an item is left out."""
    graph = networkx.MultiDiGraph(around=f"Q{around.around}")
    for item in around.items:
        known = {name: getattr(item, name) for name in _NODE_KEYS}
        graph.add_node(f"Q{item.number}", **{name: value for name, value in known.items() if value is not None})
    for edge in around.edges:
        stated = {name: getattr(edge, name) for name in _EDGE_KEYS}
        graph.add_edge(f"Q{edge.subject}", f"Q{edge.value}", f"{edge.property}-{edge.position}", **stated)
    return graph


def _parsed_networkx(content: bytes, form: GraphFormat) -> "networkx.Graph[str]":
    """Parse GraphML or node-link JSON, its statements under `edges`, or `links` as older versions wrote them."""
    if form == "graphml":
        return networkx.read_graphml(io.BytesIO(content), force_multigraph=True)
    data = json.loads(content)
    return networkx.node_link_graph(data, edges="edges" if "edges" in data else "links")


def from_networkx(graph: "networkx.Graph[str]") -> Neighbourhood:
    """Read any directed graph of networkx whose nodes are QIDs and whose edges have a `property`.

    An edge without `rank` is of normal rank; one without `qualified` or `ended` is neither. A node of which nothing
    is known, and that says nothing, counts as mentioned only.
    """
    if not graph.is_directed():
        raise UsageError("the graph has no directions", expected="a directed graph")
    items = []
    for node, known in graph.nodes(data=True):
        for name, kind in _NODE_KEYS.items():
            if known.get(name) is not None and not isinstance(known[name], kind):
                raise UsageError("not what a node can say", where=f"{node}: {name}", found=repr(known[name])[:60])
        texts = [known.get(name) and without_halves(known[name]) for name in ("label", "label_language", "description")]
        language = texts[1] if texts[0] else None
        items.append(Neighbour(number_of_item(str(node)), texts[0], language, texts[2], known.get("hop")))
    keyed = networkx.MultiDiGraph(graph).edges(keys=True, data=True)
    rows = sorted((_place_of(key), _statement(subject, value, stated)) for subject, value, key, stated in keyed)
    return Neighbourhood(0, tuple(sorted(items, key=lambda item: item.number)), _placed(row for _, row in rows), 0)


_Statement = tuple[int, str, int, str, bool, bool]


def _place_of(key: object) -> int:
    """Read from the key of an edge which place it had among the statements of its item."""
    found = _POSITION.search(str(key))
    return int(found[1]) if found else 0


def _statement(subject: object, value: object, stated: Mapping[str, Any]) -> _Statement:
    """Read an edge: subject, property, value, rank, qualified, ended."""
    where, name = f"{subject} -> {value}", stated.get("property")
    if not isinstance(name, str) or not _PROPERTY.match(name):
        raise UsageError("an edge needs a property", where=where, expected="property: P31", found=repr(name)[:60])
    rank, qualified, ended = stated.get("rank", "normal"), stated.get("qualified", False), stated.get("ended", False)
    if rank not in _RANKS:
        raise UsageError("not a rank", where=where, expected=" or ".join(_RANKS), found=repr(rank)[:60])
    if not isinstance(qualified, bool) or not isinstance(ended, bool):
        raise UsageError("qualified and ended are true or false", where=where)
    return number_of_item(str(subject)), name, number_of_item(str(value)), rank, qualified, ended


def _placed(rows: Iterator[_Statement]) -> tuple[StatedEdge, ...]:
    """Count the statements of an item and property from 0, and tell those of the best rank."""
    ordered = sorted(rows, key=lambda row: row[:2])
    preferred = {row[:2] for row in ordered if row[3] == "preferred"}
    places: Counter[tuple[int, str]] = Counter()
    edges = []
    for subject, name, value, rank, qualified, ended in ordered:
        best = "preferred" if (subject, name) in preferred else "normal"
        edges.append(StatedEdge(subject, name, places[subject, name], value, rank, qualified, ended, rank == best))
        places[subject, name] += 1
    if places and max(places.values()) > 2**16:
        (subject, name), count = places.most_common(1)[0]
        raise UsageError(
            "too many statements of a property", where=f"Q{subject}: {name}", expected="65,536 at most",
            found=f"{count:,}",
        )  # fmt: skip
    return tuple(edges)


def new_graph() -> Graph:
    """Make a graph that knows no prefixes but ours."""
    graph = Graph()
    graph.namespace_manager = NamespaceManager(graph, bind_namespaces="none")
    for prefix, namespace in PREFIXES.items():
        graph.bind(prefix, namespace)
    return graph


def rdf_graph(around: Neighbourhood) -> Graph:
    """Give a neighbourhood to rdflib: labels, and the statements of best rank as `wdt:` triples."""
    graph = new_graph()
    for item in around.items:
        if item.label is not None:
            graph.add((ENTITY[f"Q{item.number}"], RDFS.label, Literal(item.label, lang=item.label_language)))
    for edge in around.edges:
        if edge.truthy:
            graph.add((ENTITY[f"Q{edge.subject}"], DIRECT[edge.property], ENTITY[f"Q{edge.value}"]))
    return graph


def written_rdf(graph: Graph, form: str) -> bytes:
    """Write a graph; equal graphs without blank nodes give equal bytes."""
    if form == "json-ld":
        context = {prefix: str(namespace) for prefix, namespace in graph.namespaces()}
        data = json.loads(graph.serialize(format=form, context=context, sort_keys=True))
        if "@graph" in data:
            data["@graph"].sort(key=lambda node: node["@id"])
        return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode()
    content = graph.serialize(format=form, encoding="utf-8")
    return b"".join(sorted(content.splitlines(keepends=True))) if form == "ntriples" else content


def _parsed_rdf(content: bytes, form: str) -> Graph:
    """Parse triples; JSON-LD may name no context elsewhere: nothing is fetched."""
    if form == "json-ld" and any(map(_leads_elsewhere, _contexts(json.loads(content)))):
        raise UsageError("a context elsewhere is not fetched", expected="a @context inside the file")
    return new_graph().parse(data=content, format=form)


def _contexts(node: object) -> Iterator[object]:
    """Find every context in a JSON-LD document."""
    listed = node if isinstance(node, list) else ()
    for name, inner in node.items() if isinstance(node, dict) else ((None, each) for each in listed):
        if name in {"@context", "@import"}:
            yield inner
        yield from _contexts(inner)


def _leads_elsewhere(context: object) -> bool:
    """Tell whether a context is an address, or has one among its parts."""
    return isinstance(context, str) or (isinstance(context, list) and any(map(_leads_elsewhere, context)))


def _from_rdf(graph: Graph) -> tuple[Neighbourhood, int]:
    """Read items, labels and `wdt:` triples; the number counts triples about anything else."""
    labels: dict[int, list[tuple[int, str, str]]] = {}
    rows: list[_Statement] = []
    mentioned: set[int] = set()
    others = 0
    for subject, predicate, value in graph:
        number, target, name = _number_in(subject), _number_in(value), str(predicate).removeprefix(DIRECT)
        if number is not None and predicate == RDFS.label and isinstance(value, Literal):
            code = value.language or ""
            order = _LANGUAGES.index(code) if code in _LANGUAGES else len(_LANGUAGES)
            labels.setdefault(number, []).append((order, code, without_halves(value)))
        elif number is not None and target is not None and _PROPERTY.match(name):
            rows.append((number, name, target, "normal", False, False))
            mentioned |= {number, target}
        else:
            others += 1
    items = []
    for number in sorted(mentioned | labels.keys()):
        _, code, label = min(labels.get(number, [(0, "", "")]))
        items.append(Neighbour(number, label or None, code or None, None, None))
    return Neighbourhood(0, tuple(items), _placed(iter(sorted(rows))), 0), others


def _number_in(term: object) -> int | None:
    """Read an item's IRI as its number; None for anything else."""
    if not isinstance(term, URIRef) or not term.startswith(ENTITY):
        return None
    name = term.removeprefix(ENTITY)
    return number_of_item(name) if QID.match(name) and int(name[1:]) < 2**32 else None


def import_graph(work: Work, path: Path, form: GraphFormat) -> Outcome:
    """Write a graph store from a file; what the file only names, and says nothing of, counts as mentioned."""
    found, others = read_graph_file(path, form)
    if not found.edges:
        raise UsageError("the file has no statement about items", where=str(path), expected="statements such as P31")
    stating = {edge.subject for edge in found.edges}
    items = [
        {
            **NO_DUMP, "qid": f"Q{item.number}", "number": item.number, "label": item.label,
            "label_language": item.label_language, "description": item.description,
        }
        for item in found.items
        if item.label is not None or item.description is not None or item.hop is not None or item.number in stating
    ]  # fmt: skip
    stated = [(e.subject, e.property, e.position, e.value, "value", e.rank, e.qualified, e.ended) for e in found.edges]
    statements = pl.DataFrame(stated, schema=STATEMENTS.schema, orient="row")
    counts = store_rows(work.out, pl.DataFrame(items, schema=ITEMS.schema), statements)
    return Outcome(counts, {"not-about-items": others} if others else {})
