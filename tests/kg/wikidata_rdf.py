"""Entity documents of a dump as Wikidata writes the same facts in RDF."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from rdflib import RDF, RDFS, SKOS, XSD, BNode, Graph, Literal, Namespace, URIRef

__all__ = ["as_rdf"]

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
    for field, predicate in TEXTS:
        for language, terms in (document.get(field) or {}).items():
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
