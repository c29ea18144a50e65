"""Entity documents as the truthy dump writes them in N-Triples, by a writer that shares nothing with the reader."""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

__all__ = ["truthy_documents", "truthy_lines"]

WD, WDT, WDNO = (f"http://www.wikidata.org/{part}/" for part in ("entity", "prop/direct", "prop/novalue"))
DATA = "https://www.wikidata.org/wiki/Special:EntityData/"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = (
    ("labels", "http://www.w3.org/2000/01/rdf-schema#label"),
    ("labels", "http://www.w3.org/2004/02/skos/core#prefLabel"),
    ("labels", "http://schema.org/name"),
    ("descriptions", "http://schema.org/description"),
    ("aliases", "http://www.w3.org/2004/02/skos/core#altLabel"),
)


def truthy_lines(documents: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Write each document: its page, its kind, its terms in every language, and its best statements."""
    blank = 0
    for document in documents:
        entity, page = f"<{WD}{document['id']}>", f"<{DATA}{document['id']}>"
        yield f"{page} <{TYPE}> <http://schema.org/Dataset> ."
        yield f"{page} <http://schema.org/about> {entity} ."
        yield f'{page} <http://schema.org/version> "42"^^<{XSD}integer> .'
        kind = {"item": "Item", "property": "Property"}[document["type"]]
        yield f"{entity} <{TYPE}> <http://wikiba.se/ontology#{kind}> ."
        for field, predicate in TERMS:
            for language, terms in (document.get(field) or {}).items():
                for term in terms if isinstance(terms, list) else [terms]:
                    yield f"{entity} <{predicate}> {text(term['value'])}@{bcp47(language)} ."
        for name, claims in (document.get("claims") or {}).items():
            for snak in best(claims):
                if snak["snaktype"] == "novalue":
                    yield f"{entity} <{TYPE}> <{WDNO}{name}> ."
                    continue
                blank += snak["snaktype"] == "somevalue"
                value = f"_:genid{blank}" if snak["snaktype"] == "somevalue" else written(snak["datavalue"], name)
                yield f"{entity} <{WDT}{name}> {value} ."


def best(claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Choose the main snaks of the best rank that is not deprecated."""
    ranks = [claim.get("rank", "normal") for claim in claims]
    wanted = "preferred" if "preferred" in ranks else "normal"
    return [claim["mainsnak"] for claim, rank in zip(claims, ranks, strict=True) if rank == wanted]


def written(data: dict[str, Any], name: str) -> str:
    """Write a value as the data type of its property asks for."""
    value = data["value"]
    if data["type"] == "wikibase-entityid":
        letter = {"item": "Q", "property": "P", "lexeme": "L"}[value["entity-type"]]
        return f"<{WD}{value.get('id') or letter + str(value['numeric-id'])}>"
    if data["type"] == "globecoordinate":
        globe = "" if value["globe"].endswith("/Q2") else f"<{value['globe']}> "
        point = f"{globe}Point({value['longitude']} {value['latitude']})"
        return f'"{point}"^^<http://www.opengis.net/ont/geosparql#wktLiteral>'
    if data["type"] == "monolingualtext":
        return f"{text(value['text'])}@{bcp47(value['language'])}"
    if name == "P18":
        return f"<http://commons.wikimedia.org/wiki/Special:FilePath/{quote(value, safe='')}>"
    return text(value) if isinstance(value, str) else text(str(value))


def text(value: str) -> str:
    """Quote a text as the dump does: all beyond ASCII is escaped."""
    short = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(short.get(c) or (c if " " <= c <= "~" else escaped(c)) for c in value) + '"'


def escaped(character: str) -> str:
    """Write a character by its number."""
    return f"\\u{ord(character):04X}" if ord(character) < 0x10000 else f"\\U{ord(character):08X}"


def bcp47(code: str) -> str:
    """Write a language as RDF does: regions in capitals, scripts with one."""
    first, *rest = code.split("-")
    return "-".join([first, *(part.upper() if len(part) == 2 else part.title() for part in rest)])


def truthy_documents(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave in JSON documents what a truthy dump has: statements of best rank, no qualifiers, no pages."""
    kept = []
    for document in documents:
        claims = {
            name: [{"mainsnak": snak, "rank": "normal", "type": "statement"} for snak in best(statements)]
            for name, statements in (document.get("claims") or {}).items()
        }
        kept.append({**document, "claims": {name: some for name, some in claims.items() if some}, "sitelinks": {}})
    return kept
