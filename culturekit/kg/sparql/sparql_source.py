"""Candidates from a SPARQL endpoint: what the walk can reach is fetched into a small graph, and the same walk is run.

So every rule, from ranks to paths, is the code that runs on a dump.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from urllib.parse import unquote

import polars as pl

from culturekit.core.atomic import clear_folder
from culturekit.core.errors import UsageError
from culturekit.core.schemas import CANDIDATES, ITEMS, STATEMENTS
from culturekit.core.tables import read_table
from culturekit.core.work import Outcome, Work
from culturekit.kg.concepts import COUNTRY_PROPERTIES, EDGE_PROPERTIES, Concept, Root, flags_of
from culturekit.kg.dump.build_store import NO_DUMP, store_rows
from culturekit.kg.dump.entities import ENTITY_STATEMENTS, languages_in_order, wikipedia_of
from culturekit.kg.sparql import sparql_queries as queries
from culturekit.kg.sparql.sparql_client import Row, SparqlClient, Term
from culturekit.kg.walk.extract import ExtractOptions, extract

# Result rows of an endpoint to the rows that a dump would give: statements, labels, media.
#
# RDF keeps neither the order of an item's statements nor that of its aliases: here they come by value.

ITEM = re.compile(r"^http://www\.wikidata\.org/entity/Q([1-9][0-9]*)$")
PROPERTY = re.compile(r"/(P[1-9][0-9]*)$")
POINT = re.compile(r"^(?:<[^>]*>\s*)?Point\(\s*(\S+)\s+(\S+)\s*\)$", re.IGNORECASE)
GENID = "/.well-known/genid/"
"""How Wikidata's own server names a value that is there and not known."""

RANKS = {"PreferredRank": "preferred", "NormalRank": "normal", "DeprecatedRank": "deprecated"}
RANK_ORDER = ("preferred", "normal")


@dataclass(slots=True)
class StatedValue:
    """A statement as an endpoint gives it, bit by bit: `value` stays None where there is none that has a name."""

    number: int
    property: str
    statement: str
    rank: str = ""
    value: str | None = None
    snak: str = "novalue"
    qualifiers: set[str] = field(default_factory=set)
    without_value: set[str] = field(default_factory=set)

    def take(self, predicate: str, value: Term) -> None:
        """Take in one triple about the statement."""
        if predicate.endswith("#rank"):
            self.rank = RANKS.get(value.value.rpartition("#")[2], "")
        elif "/qualifier/" in predicate:
            self.qualifiers.add(property_of(predicate))
        elif "/novalue/" in value.value:
            self.without_value.add(property_of(value.value))
        elif value.type == "bnode" or GENID in value.value:
            self.snak = "somevalue"
        else:
            self.snak, self.value = "value", value.value

    def all_qualifiers(self) -> set[str]:
        """List its qualifiers; that its own value is none is not one of them."""
        own = {self.property} if self.snak == "novalue" else set()
        return self.qualifiers | (self.without_value - own)


def number_of(term: Term | None) -> int | None:
    """Read an item's IRI as its number; None for anything else."""
    found = ITEM.match(term.value) if term is not None and term.type == "uri" else None
    number = int(found[1]) if found else 0
    return number if 0 < number < 2**32 else None


def property_of(iri: str) -> str:
    """Read the property at the end of an IRI."""
    found = PROPERTY.search(iri)
    return found[1] if found else ""


def stated_values(rows: Iterable[Row]) -> list[StatedValue]:
    """Read statements; a statement without a rank, or about no item, is none."""
    read: dict[str, StatedValue] = {}
    for row in rows:
        number, iri = number_of(row.get("item")), row["statement"].value
        if number is not None:
            each = read.setdefault(iri, StatedValue(number, property_of(row["claim"].value), iri))
            each.take(row["predicate"].value, row["object"])
    return [each for each in read.values() if each.rank]


def statement_table(values: Sequence[StatedValue]) -> pl.DataFrame:
    """Give the statements as the store keeps them, those of an item and property in the order of their values."""
    columns: dict[str, list[object]] = {name: [] for name in STATEMENTS.columns}
    position, before = 0, (0, "")
    for each in sorted(values, key=place_in_table):
        position = position + 1 if (each.number, each.property) == before else 0
        before = (each.number, each.property)
        names = each.all_qualifiers()
        cells = (
            each.number, each.property, position, item_in(each.value), each.snak, each.rank,
            bool(names), "P582" in names,
        )  # fmt: skip
        for name, cell in zip(columns, cells, strict=True):
            columns[name].append(cell)
    return pl.DataFrame(columns, schema=STATEMENTS.schema)


def place_in_table(each: StatedValue) -> tuple[int, str, int, str]:
    """Order statements so that equal facts give equal tables."""
    return each.number, each.property, item_in(each.value) or 2**32, each.statement


def item_in(value: str | None) -> int | None:
    """Read the item that a value names."""
    return None if value is None else number_of(Term("uri", value))


def best_value(values: Iterable[StatedValue]) -> str | None:
    """Take a preferred value, else a normal one; of several the first by value."""
    usable = sorted(
        (RANK_ORDER.index(each.rank), each.value)
        for each in values
        if each.value is not None and each.rank in RANK_ORDER
    )
    return usable[0][1] if usable else None


def image_of(value: str | None) -> str | None:
    """Read the file name at the end of the IRI of a picture on Commons."""
    return None if value is None else unquote(value.rpartition("/Special:FilePath/")[2])


def place_of(value: str | None) -> tuple[float, float] | None:
    """Read latitude and longitude of a point, which has them the other way round."""
    found = POINT.match(value) if value is not None else None
    try:
        return (float(found[2]), float(found[1])) if found else None
    except ValueError:
        return None


def terms_of(rows: Iterable[Row], languages: Sequence[str]) -> Mapping[int, dict[str, object]]:
    """Choose label, description and aliases of each item as the dump's reader does: by language, then by text."""
    texts: dict[int, dict[str, dict[str, list[str]]]] = {}
    for row in rows:
        number, text = number_of(row.get("item")), row["text"]
        if number is not None:
            kinds = texts.setdefault(number, {})
            kind = re.split(r"[/#]", row["kind"].value)[-1]
            kinds.setdefault(kind, {}).setdefault(text.language.lower(), []).append(text.value)
    return {number: chosen(kinds, [code.lower() for code in languages], languages) for number, kinds in texts.items()}


def chosen(
    kinds: Mapping[str, Mapping[str, list[str]]], order: Sequence[str], said: Sequence[str]
) -> dict[str, object]:
    """Choose the terms of one item."""
    label = first_text(kinds.get("label", {}), order)
    description = first_text(kinds.get("description", {}), order)
    aliases = [text for code in order for text in sorted(kinds.get("altLabel", {}).get(code, []))]
    return {
        "label": label[1] if label else None,
        "label_language": said[order.index(label[0])] if label else None,
        "description": description[1] if description else None,
        "aliases": list(dict.fromkeys(aliases)),
    }


def first_text(texts: Mapping[str, list[str]], order: Sequence[str]) -> tuple[str, str] | None:
    """Take the text in the first language that has a usable one."""
    return next(((code, min(texts[code])) for code in order if any(text.strip() for text in texts.get(code, ()))), None)


logger = logging.getLogger(__name__)

BATCH = 100
"""Items a query asks about at once."""

Rows = list[Row]

GRAPH = "graph"
"""The folder, beside the candidates, that holds the fetched part of Wikidata as a graph store."""

MEDIA = ("P18", "P625")
LANGUAGE = re.compile(r"^[A-Za-z]+(-[A-Za-z0-9]+)*$")


def all_pages(client: SparqlClient, query_at: Callable[[int], str]) -> Rows:
    """Ask page by page until one is not full."""
    rows: Rows = []
    while True:
        page = client.select(query_at(len(rows)))
        rows += page
        if len(page) < queries.PAGE_ROWS:
            return rows


def in_batches(client: SparqlClient, numbers: Iterable[int], query: Callable[[Sequence[int], int], str]) -> Rows:
    """Ask about many items, so many at once."""
    ordered = sorted(numbers)
    batches = [ordered[start : start + BATCH] for start in range(0, len(ordered), BATCH)]
    answered = client.source.each(lambda batch: all_pages(client, partial(query, batch)), batches)
    return [row for rows in answered for row in rows]


@dataclass(slots=True)
class Crawl:
    """What was fetched so far; several concepts share it, and nothing is asked for twice."""

    client: SparqlClient
    statements: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=STATEMENTS.schema))
    known: set[int] = field(default_factory=set)
    asked: set[tuple[str, int]] = field(default_factory=set)

    def fetch(self, concept: Concept, advance: Callable[[int], None]) -> None:
        """Fetch everything that the walk of a concept can meet, with all its statements."""
        roots = concept.limits
        cut = {int(qid[1:]) for qid in concept.exclude.classes} - set(roots)
        left = dict(roots)
        self.describe(roots)
        for hops in range(max(roots.values()), 0, -1):
            fresh = {number for number, more in left.items() if more == hops} - cut
            parents = fresh - (self.artifacts(concept, fresh) - set(roots))
            self.describe(self.children(parents, concept.follow))
            for child in self.followed(concept, parents):
                left[child] = max(left.get(child, 0), hops - 1)
            advance(1)
            logger.info("%s: %d items known, %d hops to go", concept.concept, len(self.known), hops - 1)

    def children(self, parents: Iterable[int], follow: Sequence[str]) -> set[int]:
        """Ask which items state a parent, where that was not asked before."""
        found: set[int] = set()
        for name in follow:
            wanted = [parent for parent in parents if (name, parent) not in self.asked]
            rows = in_batches(self.client, wanted, lambda batch, at, name=name: queries.children(batch, [name], at))  # type: ignore[misc]
            found |= {number for row in rows if (number := number_of(row.get("child"))) is not None}
            self.asked |= {(name, parent) for parent in wanted}
        return found

    def describe(self, numbers: Iterable[int]) -> None:
        """Fetch the statements of items that are not known yet."""
        fresh = set(numbers) - self.known
        table = statement_table(self.values(fresh, ENTITY_STATEMENTS))
        self.statements = pl.concat([self.statements, table])
        self.known |= fresh

    def values(self, numbers: Iterable[int], properties: Sequence[str]) -> list[StatedValue]:
        """Fetch what items state by some properties."""
        return stated_values(
            in_batches(self.client, numbers, lambda batch, at: queries.statements(batch, properties, at))
        )

    def artifacts(self, concept: Concept, numbers: set[int]) -> set[int]:
        """Tell which items the concept takes as artifacts, below which it does not walk."""
        if concept.expand_artifacts:
            return set()
        flags = flags_of(self.statements.filter(pl.col("number").is_in(sorted(numbers))), COUNTRY_PROPERTIES)
        return set(flags.filter((pl.col("flags") & concept.country_mask) != 0)["number"].to_list())

    def followed(self, concept: Concept, parents: set[int]) -> set[int]:
        """Tell which items hang below parents by statements that the concept follows."""
        below = pl.col("value").is_in(sorted(parents))
        children = self.statements.filter(below, pl.col("property").is_in(EDGE_PROPERTIES))["number"]
        flags = flags_of(self.statements.filter(pl.col("number").is_in(children.unique().implode())), EDGE_PROPERTIES)
        return set(flags.filter(below, (pl.col("flags") & concept.edge_mask) != 0)["number"].to_list())


def extract_from_endpoint(
    work: Work,
    client: SparqlClient,
    concepts: Sequence[Concept],
    options: ExtractOptions | None = None,
    *,
    successors: Mapping[int, int] = MappingProxyType({}),
) -> Outcome:
    """Write the candidates of concepts from what an endpoint answers; what it answered is kept in `work.scratch`."""
    languages = languages_of(concepts)
    work.progress.begin(sum(max(map(concept.hops_of, concept.roots)) for concept in concepts) + 1, "hops")
    crawl = Crawl(client)
    for concept in concepts:
        crawl.fetch(concept, work.progress.advance)
    details = described(crawl, named_in_rows(work, crawl, concepts), languages)
    work.progress.advance(1)
    graph = work.out / GRAPH
    graph.mkdir(exist_ok=True)
    store_rows(graph, items_table(crawl, details), crawl.statements)
    outcome = extract(work, graph, concepts, options or ExtractOptions(), successors=successors)
    counts = {**outcome.counts, "items": len(crawl.known)}
    return Outcome(counts, outcome.drops, outcome.notes)


def named_in_rows(work: Work, crawl: Crawl, concepts: Sequence[Concept]) -> set[int]:
    """Find the items that need a name: the roots, the candidates and what lies on their paths."""
    graph, rows = work.scratch / "bare-graph", work.scratch / "bare-rows"
    clear_folder(graph)
    clear_folder(rows)
    store_rows(graph, items_table(crawl, {root: {} for root in roots_of(concepts)}), crawl.statements)
    silent = [concept.model_copy(update={"roots": tuple(map(unexpecting, concept.roots))}) for concept in concepts]
    extract(replace(work, out=rows), graph, silent)
    found = read_table(rows / "candidates.parquet", CANDIDATES)
    return roots_of(concepts) | {int(qid[1:]) for path in found["path"].to_list() for qid in path}


def roots_of(concepts: Sequence[Concept]) -> set[int]:
    """List the roots of concepts."""
    return {int(root.qid[1:]) for concept in concepts for root in concept.roots}


def unexpecting(root: Root) -> Root:
    """Take away what a root expects, so that only the final walk complains."""
    return root.model_copy(update={"expect": None})


def languages_of(concepts: Sequence[Concept]) -> tuple[str, ...]:
    """List the languages of labels: English, `mul`, then those that the concepts name."""
    named = dict.fromkeys(language for concept in concepts for language in concept.languages)
    for language in named:
        if not LANGUAGE.match(language):
            raise UsageError("not a language code", expected="a code such as en or pt-BR", found=repr(language))
    return tuple(named)


def described(crawl: Crawl, numbers: set[int], languages: tuple[str, ...]) -> Mapping[int, dict[str, object]]:
    """Fetch labels, descriptions, aliases, sitelinks, title, picture and place of items."""
    client = crawl.client
    order = languages_in_order(languages)
    terms = terms_of(in_batches(client, numbers, lambda batch, at: queries.terms(batch, order, at)), order)
    rows = in_batches(client, numbers, queries.counts)
    counts = {number_of(row["item"]): int(row["count"].value) for row in rows}
    wiki = wikipedia_of(languages[0].lower().replace("_", "-"))
    pages = in_batches(client, numbers, lambda batch, at: queries.titles(batch, wiki, at))
    titles = {number_of(row["item"]): row["title"].value for row in pages}
    media: dict[int, list[StatedValue]] = {}
    for value in crawl.values(numbers, MEDIA):
        media.setdefault(value.number, []).append(value)
    return {
        number: {
            **terms.get(number, {}),
            **({"sitelinks": counts[number]} if number in counts else {}),
            "title": titles.get(number),
            **media_of(media.get(number, [])),
        }
        for number in numbers
        if number in terms or number in counts
    }


def media_of(values: Sequence[StatedValue]) -> dict[str, object]:
    """Choose the picture and the place of an item."""
    place = place_of(best_value(value for value in values if value.property == "P625"))
    return {
        "image": image_of(best_value(value for value in values if value.property == "P18")),
        "lat": place[0] if place else None,
        "lon": place[1] if place else None,
    }


def items_table(crawl: Crawl, details: Mapping[int, Mapping[str, object]]) -> pl.DataFrame:
    """Give a row to each item that the endpoint describes."""
    numbers = sorted(set(crawl.statements["number"].to_list()) | set(details))
    rows = [{**NO_DUMP, **details.get(number, {}), "qid": f"Q{number}", "number": number} for number in numbers]
    return pl.DataFrame(rows, schema=ITEMS.schema)
