"""Extract candidates from a SPARQL endpoint: what the walk can reach becomes a small graph, and the same walk is run.

So every rule, from ranks to paths, is the code that runs on a dump.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Self
from urllib.parse import unquote

import msgspec
import polars as pl
from SPARQLWrapper import JSON, POST, SPARQLWrapper

from culturekit.core.atomic import clear_folder
from culturekit.core.errors import UsageError
from culturekit.core.schemas import CANDIDATES, ITEMS, STATEMENTS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table
from culturekit.kg.concepts import COUNTRY_PROPERTIES, EDGE_PROPERTIES, ENTITY_STATEMENTS, Concept, flags_of
from culturekit.kg.countries import wikipedia_of
from culturekit.kg.dump.entities import languages_in_order
from culturekit.kg.dump.ingest import NO_DUMP, store_rows
from culturekit.kg.extract import ExtractOptions, extract
from culturekit.kg.polite_source import LONGEST_ANSWER, KeptAnswers, Pace, PoliteSource, check_contact

logger = logging.getLogger(__name__)

# An endpoint, asked politely, each reply kept on disk.

_MAX_BYTES = 256_000_000
# No limit of ours: an endpoint of one's own answers as fast as it can; Wikimedia's keeps the pace of Wikimedia.
_PER_SECOND = 1000.0


class _Term(msgspec.Struct, frozen=True, omit_defaults=True):
    """One value of a result row: an IRI, a literal or a blank node."""

    type: str
    value: str
    language: str = msgspec.field(name="xml:lang", default="")


_Row = Mapping[str, _Term]


class _Bindings(msgspec.Struct, frozen=True):
    """The rows of a result."""

    bindings: list[dict[str, _Term]]


class _Results(msgspec.Struct, frozen=True):
    """A result as the W3C's SPARQL 1.1 JSON format writes it."""

    results: _Bindings


class SparqlClient:
    """Asks one endpoint. Use as a context manager: it holds connections."""

    def __init__(
        self, endpoint: str, contact: str, cache: Path, *, timeout: float = 90.0, pace: Pace | None = None
    ) -> None:
        """Refuse what could never be asked before anything is sent."""
        check_contact(contact)
        self.endpoint = endpoint
        self.source = PoliteSource(
            endpoint, contact, pace or Pace(_PER_SECOND), timeout=timeout, longest=LONGEST_ANSWER, largest=_MAX_BYTES
        )
        self._kept = KeptAnswers(cache, _Results)

    def __enter__(self) -> Self:
        self.source.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.source.__exit__(*error)

    def select(self, query: str) -> Sequence[_Row]:
        """Answer a SELECT query, from disk where it was answered before."""
        question = [self.endpoint, query]
        found = self._kept.find(question)
        if found is None:
            found = self.source.ask("", _Results, post=_request(self.endpoint, query))
            self._kept.keep(question, found)
        return found.results.bindings


def _request(endpoint: str, query: str) -> tuple[bytes, Mapping[str, str]]:
    """Let SPARQLWrapper write the request, and not send it: it goes anywhere, wherever it is sent, for any time."""
    asking = SPARQLWrapper(endpoint, returnFormat=JSON)
    asking.setMethod(POST)
    asking.setOnlyConneg(True)
    asking.setQuery(query)
    request = asking._createRequest()
    assert isinstance(request.data, bytes)
    return request.data, {name: value for name, value in request.header_items() if name != "User-agent"}


# The queries, in plain SPARQL 1.1 over Wikidata's RDF: no label service, no hints, no server's own functions.
#
# Each is one flat group that begins with one table of the values it asks about, so that a server starts there and not
# at all triples, and each orders its rows fully, so that pages neither overlap nor leave a gap.

_PAGE_ROWS = 5_000  # below the caps that public servers put on a result
_NAMESPACES = {
    "wd": "http://www.wikidata.org/entity/",
    "p": "http://www.wikidata.org/prop/",
    "ps": "http://www.wikidata.org/prop/statement/",
    "pq": "http://www.wikidata.org/prop/qualifier/",
    "wdno": "http://www.wikidata.org/prop/novalue/",
    "wikibase": "http://wikiba.se/ontology#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "schema": "http://schema.org/",
}

_KINDS = ("rdfs:label", "schema:description", "skos:altLabel")


def _select(body: str, *, order: str) -> str:
    """Finish a query with the prefixes it uses, which not every server knows by itself, and the order of its rows."""
    prefixes = "\n".join(f"PREFIX {name}: <{iri}>" for name, iri in _NAMESPACES.items() if f"{name}:" in body)
    words = " ".join(word if word.startswith("?") else f"({word})" for word in order.split())
    return f"{prefixes}\n{body}\nORDER BY {words}\nLIMIT {_PAGE_ROWS}\nOFFSET "


def _items(numbers: Sequence[int]) -> str:
    """List the items that a query is about."""
    return f"VALUES ?item {{ {' '.join(f'wd:Q{number}' for number in numbers)} }}"


def _statements_of(variable: str, numbers: Sequence[int], properties: Sequence[str]) -> str:
    """List items, each with the properties as they lead from an item to a statement, and from there to its value."""
    rows = " ".join(f"(wd:Q{number} p:{name} ps:{name})" for number in numbers for name in properties)
    return f"VALUES (?{variable} ?claim ?main) {{ {rows} }}"


def _children_query(parents: Sequence[int], properties: Sequence[str]) -> str:
    """Ask which items state one of these properties with one of these values, whatever the rank."""
    stated = _statements_of("parent", parents, properties)
    body = f"SELECT DISTINCT ?child WHERE {{ {stated} ?statement ?main ?parent . ?child ?claim ?statement . }}"
    return _select(body, order="?child")


def _statements_query(numbers: Sequence[int], properties: Sequence[str]) -> str:
    """Ask for the statements of items: a row for the rank, the value and each qualifier of each statement.

    Somevalue is a node without a name. Novalue is a type of the statement, of its own property or of a qualifier's.
    There is no OPTIONAL: servers differ in what it means beside a table of values.
    """
    body = f"""SELECT DISTINCT ?item ?claim ?statement ?predicate ?object WHERE {{
  {_statements_of("item", numbers, properties)}
  ?item ?claim ?statement .
  ?statement ?predicate ?object .
  FILTER(?predicate = ?main || ?predicate = wikibase:rank || STRSTARTS(STR(?predicate), "{_NAMESPACES["pq"]}P")
    || (?predicate = rdf:type && STRSTARTS(STR(?object), "{_NAMESPACES["wdno"]}P")))
}}"""
    return _select(body, order="?statement ?predicate ?object")


def _terms_query(numbers: Sequence[int], languages: Sequence[str]) -> str:
    """Ask for labels, descriptions and aliases in some languages."""
    wanted = ", ".join(f'"{language.lower()}"' for language in languages)
    body = f"""SELECT ?item ?kind ?text WHERE {{
  VALUES (?item ?kind) {{ {" ".join(f"(wd:Q{number} {kind})" for number in numbers for kind in _KINDS)} }}
  ?item ?kind ?text .
  FILTER(LCASE(LANG(?text)) IN ({wanted}))
}}"""
    return _select(body, order="?item ?kind LANG(?text) STR(?text)")


def _counts_query(numbers: Sequence[int]) -> str:
    """Ask how many sitelinks items have; servers keep the number at the item or at the page about it."""
    at_page = "?page schema:about ?item . ?page wikibase:sitelinks ?count ."
    body = f"""SELECT DISTINCT ?item ?count WHERE {{
  {{ {_items(numbers)} ?item wikibase:sitelinks ?count . }} UNION {{ {_items(numbers)} {at_page} }}
}}"""
    return _select(body, order="?item ?count")


def _titles_query(numbers: Sequence[int], language: str) -> str:
    """Ask for the titles of the articles about items on one Wikipedia."""
    page = f"?page schema:about ?item . ?page schema:isPartOf <https://{language}.wikipedia.org/> ."
    return _select(
        f"SELECT ?item ?title WHERE {{ {_items(numbers)} {page} ?page schema:name ?title . }}", order="?item ?title"
    )


# Result rows of an endpoint to the rows that a dump would give: statements, labels, media.
#
# RDF keeps neither the order of an item's statements nor that of its aliases: here they come by value.

_ITEM = re.compile(r"^http://www\.wikidata\.org/entity/Q([1-9][0-9]*)$")
_PROPERTY = re.compile(r"/(P[1-9][0-9]*)$")
_POINT = re.compile(r"^(?:<[^>]*>\s*)?Point\(\s*(\S+)\s+(\S+)\s*\)$", re.IGNORECASE)
_GENID = "/.well-known/genid/"  # how Wikidata's own server names a value that is there and not known
_RANKS = {"PreferredRank": "preferred", "NormalRank": "normal", "DeprecatedRank": "deprecated"}


@dataclass(slots=True)
class _Statement:
    """A statement as an endpoint gives it, bit by bit: `value` stays None where there is none that has a name."""

    number: int
    property: str
    iri: str
    rank: str = ""
    value: str | None = None
    snak: str = "novalue"
    qualifiers: set[str] = field(default_factory=set)
    without_value: set[str] = field(default_factory=set)

    def take(self, predicate: str, value: _Term) -> None:
        """Take in one triple about the statement."""
        if predicate.endswith("#rank"):
            self.rank = _RANKS.get(value.value.rpartition("#")[2], "")
        elif "/qualifier/" in predicate:
            self.qualifiers.add(_property_of(predicate))
        elif "/novalue/" in value.value:
            self.without_value.add(_property_of(value.value))
        elif value.type == "bnode" or _GENID in value.value:
            self.snak = "somevalue"
        else:
            self.snak, self.value = "value", value.value

    def target(self) -> int | None:
        """Give the item that the value names."""
        return None if self.value is None else _number_of(_Term("uri", self.value))


def _number_of(term: _Term | None) -> int | None:
    """Read an item's IRI as its number; None for anything else."""
    found = _ITEM.match(term.value) if term is not None and term.type == "uri" else None
    number = int(found[1]) if found else 0
    return number if 0 < number < 2**32 else None


def _property_of(iri: str) -> str:
    """Read the property at the end of an IRI."""
    found = _PROPERTY.search(iri)
    return found[1] if found else ""


def _statements_in(rows: Iterable[_Row]) -> list[_Statement]:
    """Read statements; a statement without a rank, or about no item, is none."""
    read: dict[str, _Statement] = {}
    for row in rows:
        number, iri = _number_of(row.get("item")), row["statement"].value
        if number is not None:
            statement = read.setdefault(iri, _Statement(number, _property_of(row["claim"].value), iri))
            statement.take(row["predicate"].value, row["object"])
    return [statement for statement in read.values() if statement.rank]


def _statement_table(statements: Sequence[_Statement]) -> pl.DataFrame:
    """Give the statements as the store keeps them, those of an item and property in the order of their values."""
    rows: list[tuple[object, ...]] = []
    position, before = 0, (0, "")
    for each in sorted(statements, key=lambda s: (s.number, s.property, s.target() or 2**32, s.iri)):
        position = position + 1 if (each.number, each.property) == before else 0
        before = (each.number, each.property)
        # That its value is none is no qualifier of a statement.
        qualifiers = each.qualifiers | (each.without_value - ({each.property} if each.snak == "novalue" else set()))
        rows.append(
            (each.number, each.property, position, each.target(), each.snak, each.rank, bool(qualifiers),
             "P582" in qualifiers)
        )  # fmt: skip
    return pl.DataFrame(rows, schema=STATEMENTS.schema, orient="row")


def _best_value(statements: Iterable[_Statement], name: str) -> str | None:
    """Take a preferred value of a property, else a normal one; of several the first by value."""
    order = ("preferred", "normal")
    usable = [(order.index(s.rank), s.value) for s in statements if s.property == name and s.rank in order and s.value]
    return min(usable)[1] if usable else None


def _media_of(statements: Sequence[_Statement]) -> dict[str, object]:
    """Choose the picture, a file name on Commons, and the place of an item, a point with its longitude first."""
    image, point = _best_value(statements, "P18"), _POINT.match(_best_value(statements, "P625") or "")
    try:
        lat, lon = (float(point[2]), float(point[1])) if point else (None, None)
    except ValueError:
        lat = lon = None
    file = None if image is None else unquote(image.rpartition("/Special:FilePath/")[2])
    return {"image": file, "lat": lat, "lon": lon}


def _terms_in(rows: Iterable[_Row], languages: Sequence[str]) -> Mapping[int, dict[str, object]]:
    """Choose label, description and aliases of each item as the dump's reader does: by language, then by text."""
    texts: dict[int, dict[str, dict[str, list[str]]]] = {}
    for row in rows:
        number, text = _number_of(row.get("item")), row["text"]
        if number is not None:
            kinds = texts.setdefault(number, {})
            kind = re.split(r"[/#]", row["kind"].value)[-1]
            kinds.setdefault(kind, {}).setdefault(text.language.lower(), []).append(text.value)

    def first(texts: Mapping[str, list[str]]) -> tuple[str | None, str | None]:
        """Take the text in the first language that has a usable one."""
        usable = (code for code in languages if any(text.strip() for text in texts.get(code.lower(), ())))
        return next(((min(texts[code.lower()]), code) for code in usable), (None, None))

    chosen: dict[int, dict[str, object]] = {}
    for number, kinds in texts.items():
        label, language = first(kinds.get("label", {}))
        aliases = [text for code in languages for text in sorted(kinds.get("altLabel", {}).get(code.lower(), []))]
        chosen[number] = {
            "label": label, "label_language": language, "description": first(kinds.get("description", {}))[0],
            "aliases": list(dict.fromkeys(aliases)),
        }  # fmt: skip
    return chosen


# What a walk can meet, fetched.

_BATCH = 100  # items a query asks about at once
_GRAPH = "graph"  # the folder, beside the candidates, that holds the fetched part of Wikidata as a graph store
_LANGUAGE = re.compile(r"^[A-Za-z]+(-[A-Za-z0-9]+)*$")


@dataclass(slots=True)
class _Crawl:
    """What was fetched so far; several concepts share it, and nothing is asked for twice."""

    client: SparqlClient
    statements: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=STATEMENTS.schema))
    known: set[int] = field(default_factory=set)
    asked: set[tuple[str, int]] = field(default_factory=set)

    def rows(self, numbers: Iterable[int], query: Callable[[Sequence[int]], str]) -> list[_Row]:
        """Ask about many items, so many at once, page by page until one is not full."""
        ordered = sorted(numbers)

        def pages(batch: Sequence[int]) -> list[_Row]:
            rows: list[_Row] = []
            text = query(batch)
            while True:
                page = self.client.select(f"{text}{len(rows)}")
                rows += page
                if len(page) < _PAGE_ROWS:
                    return rows

        batches = [ordered[start : start + _BATCH] for start in range(0, len(ordered), _BATCH)]
        return [row for rows in self.client.source.each(pages, batches) for row in rows]

    def fetch(self, concept: Concept, advance: Callable[[int], None]) -> None:
        """Fetch everything that the walk of a concept can meet, with all its statements."""
        roots = concept.limits
        cut = concept.excluded_classes - set(roots)
        left = dict(roots)
        self.describe(roots)
        for hops in range(max(roots.values()), 0, -1):
            fresh = {number for number, more in left.items() if more == hops} - cut
            parents = fresh - (self._artifacts(concept, fresh) - set(roots))
            self.describe(self._children(parents, concept.follow))
            for child in self._followed(concept, parents):
                left[child] = max(left.get(child, 0), hops - 1)
            advance(1)
            logger.info("%s: %d items known, %d hops to go", concept.concept, len(self.known), hops - 1)

    def _children(self, parents: Iterable[int], follow: Sequence[str]) -> set[int]:
        """Ask which items state a parent, where that was not asked before."""
        found: set[int] = set()
        for name in follow:
            wanted = [parent for parent in parents if (name, parent) not in self.asked]
            rows = self.rows(wanted, lambda batch, name=name: _children_query(batch, [name]))  # type: ignore[misc]
            found |= {number for row in rows if (number := _number_of(row.get("child"))) is not None}
            self.asked |= {(name, parent) for parent in wanted}
        return found

    def describe(self, numbers: Iterable[int]) -> None:
        """Fetch the statements of items that are not known yet."""
        fresh = set(numbers) - self.known
        self.statements = pl.concat([self.statements, _statement_table(self.stated(fresh, ENTITY_STATEMENTS))])
        self.known |= fresh

    def stated(self, numbers: Iterable[int], properties: Sequence[str]) -> list[_Statement]:
        """Fetch what items state by some properties."""
        return _statements_in(self.rows(numbers, lambda batch: _statements_query(batch, properties)))

    def _artifacts(self, concept: Concept, numbers: set[int]) -> set[int]:
        """Tell which items the concept takes as artifacts, below which it does not walk."""
        if concept.expand_artifacts:
            return set()
        flags = flags_of(self.statements.filter(pl.col("number").is_in(sorted(numbers))), COUNTRY_PROPERTIES)
        return set(flags.filter((pl.col("flags") & concept.country_mask) != 0)["number"].to_list())

    def _followed(self, concept: Concept, parents: set[int]) -> set[int]:
        """Tell which items hang below parents by statements that the concept follows."""
        below = pl.col("value").is_in(sorted(parents))
        children = self.statements.filter(below, pl.col("property").is_in(EDGE_PROPERTIES))["number"]
        flags = flags_of(self.statements.filter(pl.col("number").is_in(children.unique().implode())), EDGE_PROPERTIES)
        return set(flags.filter(below, (pl.col("flags") & concept.edge_mask) != 0)["number"].to_list())

    def details(self, numbers: set[int], languages: tuple[str, ...]) -> Mapping[int, dict[str, object]]:
        """Fetch labels, descriptions, aliases, sitelinks, title, picture and place of items."""
        order = languages_in_order(languages)
        terms = _terms_in(self.rows(numbers, lambda batch: _terms_query(batch, order)), order)
        counts = {_number_of(row["item"]): int(row["count"].value) for row in self.rows(numbers, _counts_query)}
        wiki = wikipedia_of(languages[0].lower().replace("_", "-"))
        pages = self.rows(numbers, lambda batch: _titles_query(batch, wiki))
        titles = {_number_of(row["item"]): row["title"].value for row in pages}
        media: dict[int, list[_Statement]] = {}
        for statement in self.stated(numbers, ("P18", "P625")):
            media.setdefault(statement.number, []).append(statement)
        return {
            number: {
                **terms.get(number, {}),
                **({"sitelinks": counts[number]} if number in counts else {}),
                "title": titles.get(number),
                **_media_of(media.get(number, [])),
            }
            for number in numbers
            if number in terms or number in counts
        }

    def store(self, folder: Path, details: Mapping[int, Mapping[str, object]]) -> None:
        """Write a graph store with a row for each item that the endpoint describes."""
        clear_folder(folder)
        numbers = sorted(set(self.statements["number"].to_list()) | set(details))
        rows = [{**NO_DUMP, **details.get(number, {}), "qid": f"Q{number}", "number": number} for number in numbers]
        store_rows(folder, pl.DataFrame(rows, schema=ITEMS.schema), self.statements)


def extract_from_endpoint(
    work: Work,
    client: SparqlClient,
    concepts: Sequence[Concept],
    options: ExtractOptions | None = None,
    *,
    successors: Mapping[int, int] = MappingProxyType({}),
) -> Outcome:
    """Write the candidates of concepts from what an endpoint answers; what it answered is kept in `work.scratch`."""
    languages = tuple(dict.fromkeys(language for concept in concepts for language in concept.languages))
    for language in languages:
        if not _LANGUAGE.match(language):
            raise UsageError("not a language code", expected="a code such as en or pt-BR", found=repr(language))
    work.progress.begin(sum(max(map(concept.hops_of, concept.roots)) for concept in concepts) + 1, "hops")
    crawl = _Crawl(client)
    for concept in concepts:
        crawl.fetch(concept, work.progress.advance)
    details = crawl.details(_named_in_rows(work, crawl, concepts), languages)
    work.progress.advance(1)
    crawl.store(work.out / _GRAPH, details)
    outcome = extract(work, work.out / _GRAPH, concepts, options or ExtractOptions(), successors=successors)
    return Outcome({**outcome.counts, "items": len(crawl.known)}, outcome.drops, outcome.notes)


def _named_in_rows(work: Work, crawl: _Crawl, concepts: Sequence[Concept]) -> set[int]:
    """Find the items that need a name: the roots, the candidates and what lies on their paths."""
    graph, rows = work.scratch / "bare-graph", work.scratch / "bare-rows"
    clear_folder(rows)
    roots = {number for concept in concepts for number in concept.limits}
    crawl.store(graph, {root: {} for root in roots})
    # Only the final walk complains of what roots do not reach.
    silent = [
        concept.model_copy(update={"roots": tuple(root.model_copy(update={"expect": None}) for root in concept.roots)})
        for concept in concepts
    ]
    extract(replace(work, out=rows), graph, silent)
    found = read_table(rows / "candidates.parquet", CANDIDATES)
    return roots | {int(qid[1:]) for path in found["path"].to_list() for qid in path}
