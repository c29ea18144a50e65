"""A SPARQL 1.1 endpoint on loopback, rdflib or Oxigraph behind it, that can misbehave; dumps as Wikidata's RDF."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote

import pyoxigraph
from rdflib import RDF, RDFS, SKOS, XSD, BNode, Graph, Literal, Namespace, URIRef


@dataclass(frozen=True)
class Answer:
    """What the server does instead of answering the next query."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    hang_up: bool = False


@dataclass
class Endpoint:
    """A running server: what it was asked, and what it is going to do wrong, in turn."""

    graph: Graph
    oxigraph: bool = False
    url: str = ""
    queries: list[str] = field(default_factory=list, repr=False)
    agents: list[str] = field(default_factory=list, repr=False)
    connections: set[tuple[str, int]] = field(default_factory=set)
    faults: list[Answer | None] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    loaded: tuple[Graph, pyoxigraph.Store] | None = None

    def answer(self, query: str) -> bytes:
        """Let the engine answer, with no extension of its own."""
        with self.lock:
            if not self.oxigraph:
                return self.graph.query(query).serialize(format="json") or b""
            if self.loaded is None or self.loaded[0] is not self.graph:
                store = pyoxigraph.Store()
                store.load(self.graph.serialize(format="nt", encoding="utf-8"), format=pyoxigraph.RdfFormat.N_TRIPLES)
                self.loaded = self.graph, store
            found = self.loaded[1].query(query)
        assert isinstance(found, pyoxigraph.QuerySolutions)
        return found.serialize(format=pyoxigraph.QueryResultsFormat.JSON) or b""


@contextmanager
def serving(graph: Graph, *, oxigraph: bool = False) -> Iterator[Endpoint]:
    """Serve a graph for a block."""
    endpoint = Endpoint(graph, oxigraph)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            query = parse_qs(body.decode())["query"][0]
            endpoint.queries.append(query)
            endpoint.agents.append(self.headers["User-Agent"])
            endpoint.connections.add(self.client_address)
            fault = endpoint.faults.pop(0) if endpoint.faults else None
            if fault is None:
                found = endpoint.answer(query)
                fault = Answer(200, (("Content-Type", "application/sparql-results+json"),), found)
            if fault.hang_up:
                self.close_connection = True
                return
            self.send_response(fault.status)
            for name, value in fault.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(fault.body)))
            self.end_headers()
            self.wfile.write(fault.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the standard library
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint.url = f"http://127.0.0.1:{server.server_port}/sparql"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


WD = Namespace("http://www.wikidata.org/entity/")
WDS = Namespace("http://www.wikidata.org/entity/statement/")
DATA = Namespace("http://www.wikidata.org/wiki/Special:EntityData/")
PARTS = ("", "statement/", "qualifier/", "novalue/", "direct/")
P, PS, PQ, WDNO, WDT = (Namespace(f"http://www.wikidata.org/prop/{part}") for part in PARTS)
WIKIBASE = Namespace("http://wikiba.se/ontology#")
SCHEMA = Namespace("http://schema.org/")
WKT = URIRef("http://www.opengis.net/ont/geosparql#wktLiteral")
RANKS = {"preferred": "PreferredRank", "normal": "NormalRank", "deprecated": "DeprecatedRank"}
TEXTS = (("labels", RDFS.label), ("descriptions", SCHEMA.description), ("aliases", SKOS.altLabel))

Node = URIRef | BNode | Literal


def as_rdf(documents: Iterable[dict[str, Any]], *, munged: bool = True) -> Graph:
    """Load items into a graph, the first document of each; `munged` puts sitelink counts where WDQS has them."""
    graph = Graph()
    seen = set()
    for document in documents:
        if document["type"] == "item" and document["id"] not in seen:
            seen.add(document["id"])
            add_item(graph, document, munged=munged)
    return graph


def add_item(graph: Graph, document: dict[str, Any], *, munged: bool) -> None:
    item, page = WD[document["id"]], DATA[document["id"]]
    sitelinks = document.get("sitelinks") or {}
    graph.add((page, SCHEMA.about, item))
    graph.add((item if munged else page, WIKIBASE.sitelinks, Literal(len(sitelinks))))
    for part, predicate in TEXTS:
        for language, terms in (document.get(part) or {}).items():
            for term in terms if isinstance(terms, list) else [terms]:
                graph.add((item, predicate, Literal(term["value"], lang=language)))
    for site, link in sitelinks.items():
        language = site.removesuffix("wiki")
        article = URIRef(f"https://{language}.wikipedia.org/wiki/{quote(link['title'])}")
        graph.add((article, SCHEMA.about, item))
        graph.add((article, SCHEMA.isPartOf, URIRef(f"https://{language}.wikipedia.org/")))
        graph.add((article, SCHEMA.name, Literal(link["title"], lang=language)))
    for name, claims in (document.get("claims") or {}).items():
        best = "preferred" if any(claim["rank"] == "preferred" for claim in claims) else "normal"
        for position, claim in enumerate(claims):
            add_statement(graph, item, WDS[f"{document['id']}-{name}-{position}"], name, claim, best)


def add_statement(graph: Graph, item: URIRef, statement: URIRef, name: str, claim: dict[str, Any], best: str) -> None:
    graph.add((item, P[name], statement))
    graph.add((statement, RDF.type, WIKIBASE.Statement))
    graph.add((statement, WIKIBASE.rank, WIKIBASE[RANKS[claim["rank"]]]))
    value = value_of(name, claim["mainsnak"])
    if value is None:
        graph.add((statement, RDF.type, WDNO[name]))
    else:
        graph.add((statement, PS[name], value))
        if claim["rank"] == best:
            graph.add((item, WDT[name], value))
    for qualifier, snaks in (claim.get("qualifiers") or {}).items():
        for snak in snaks:
            value = value_of(qualifier, snak)
            graph.add((statement, RDF.type, WDNO[qualifier]) if value is None else (statement, PQ[qualifier], value))


def value_of(name: str, snak: dict[str, Any]) -> Node | None:
    """Give the value of a snak; somevalue is a blank node, novalue nothing."""
    if snak["snaktype"] == "novalue":
        return None
    if snak["snaktype"] == "somevalue":
        return BNode()
    value = snak["datavalue"]["value"]
    if name == "P18":
        return URIRef(f"http://commons.wikimedia.org/wiki/Special:FilePath/{quote(value)}")
    if isinstance(value, str):
        return Literal(value)
    if "latitude" in value:
        globe = value.get("globe", "").removesuffix("Q2")
        point = f"Point({value['longitude']} {value['latitude']})"
        return Literal(f"<{globe}> {point}" if globe.endswith("Q405") else point, datatype=WKT)
    if "time" in value:
        return Literal(value["time"].lstrip("+"), datatype=XSD.string)
    return WD[value.get("id") or f"Q{value['numeric-id']}"]
