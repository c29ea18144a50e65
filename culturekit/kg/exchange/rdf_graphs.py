"""A neighbourhood as RDF: N-Triples, Turtle and JSON-LD with Wikidata's IRIs, written and read by rdflib."""

import json
from collections.abc import Iterator, Sequence

from rdflib import RDFS, Graph, Literal, Namespace, URIRef
from rdflib.namespace import NamespaceManager

from culturekit.errors import UsageError
from culturekit.kg.exchange.networkx_graphs import PROPERTY, placed
from culturekit.kg.looking.neighbourhood import Neighbour, Neighbourhood
from culturekit.kg.qids import QID, number_of_item
from culturekit.storage.foreign_text import without_halves

__all__ = [
    "DIRECT",
    "ENTITY",
    "PREFIXES",
    "from_rdf",
    "new_graph",
    "number_in",
    "parsed_rdf",
    "rdf_graph",
    "written_rdf",
]

ENTITY = Namespace("http://www.wikidata.org/entity/")
DIRECT = Namespace("http://www.wikidata.org/prop/direct/")
PREFIXES = {"wd": ENTITY, "wdt": DIRECT, "rdfs": RDFS}
LANGUAGES = ("en", "mul")
"""Whose labels are taken first; then the others, by code."""


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
    for subject, name, value in sorted(
        {(edge.subject, edge.property, edge.value) for edge in around.edges if edge.truthy}
    ):
        graph.add((ENTITY[f"Q{subject}"], DIRECT[name], ENTITY[f"Q{value}"]))
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
    return b"".join(sorted(content.splitlines(keepends=True))) if form == "nt" else content


def parsed_rdf(content: bytes, form: str) -> Graph:
    """Parse triples; JSON-LD may name no context elsewhere: nothing is fetched."""
    if form == "json-ld" and any(map(leads_elsewhere, contexts(json.loads(content)))):
        raise UsageError("a context elsewhere is not fetched", expected="a @context inside the file")
    return new_graph().parse(data=content, format=form)


def contexts(node: object) -> Iterator[object]:
    """Find every context in a JSON-LD document."""
    for name, inner in node.items() if isinstance(node, dict) else ((None, each) for each in listed(node)):
        if name in {"@context", "@import"}:
            yield inner
        yield from contexts(inner)


def leads_elsewhere(context: object) -> bool:
    """Tell whether a context is an address, or has one among its parts."""
    return isinstance(context, str) or any(map(leads_elsewhere, listed(context)))


def listed(node: object) -> Sequence[object]:
    """Give the members of a list; of anything else none."""
    return node if isinstance(node, list) else ()


def from_rdf(graph: Graph) -> tuple[Neighbourhood, int]:
    """Read items, labels and `wdt:` triples; the number counts triples about anything else."""
    labels: dict[int, list[tuple[int, str, str]]] = {}
    rows, mentioned, others = [], set(), 0
    for subject, predicate, value in graph:
        number, name = number_in(subject), str(predicate).removeprefix(DIRECT)
        target = number_in(value)
        if number is not None and predicate == RDFS.label and isinstance(value, Literal):
            code = value.language or ""
            order = LANGUAGES.index(code) if code in LANGUAGES else len(LANGUAGES)
            labels.setdefault(number, []).append((order, code, without_halves(value)))
        elif number is not None and target is not None and PROPERTY.match(name):
            rows.append((number, name, 0, target, "normal", False, False))
            mentioned |= {number, target}
        else:
            others += 1
    items = []
    for number in sorted(mentioned | labels.keys()):
        _, code, label = min(labels.get(number, [(0, "", "")]))
        items.append(Neighbour(number, label or None, code or None, None, None))
    return Neighbourhood(0, tuple(items), placed(sorted(rows)), 0), others


def number_in(term: object) -> int | None:
    """Read an item's IRI as its number; None for anything else."""
    if not isinstance(term, URIRef) or not term.startswith(ENTITY):
        return None
    name = term.removeprefix(ENTITY)
    return number_of_item(name) if QID.match(name) and int(name[1:]) < 2**32 else None
