"""Candidates from a SPARQL endpoint: what the walk can reach is fetched into a small graph, and the same walk is run.

So every rule, from ranks to paths, is the code that runs on a dump.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

import polars as pl

from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept, Root
from culturekit.kg.dump.build_store import NO_DUMP, store_rows
from culturekit.kg.dump.entities import ENTITY_STATEMENTS, languages_in_order, wikipedia_of
from culturekit.kg.sparql import sparql_queries as queries
from culturekit.kg.sparql.sparql_client import Row, SparqlClient
from culturekit.kg.sparql.sparql_rows import (
    StatedValue,
    best_value,
    image_of,
    number_of,
    place_of,
    stated_values,
    statement_table,
    terms_of,
)
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES, EDGE_PROPERTIES, flags_of
from culturekit.kg.walk.extract import ExtractOptions, extract
from culturekit.records.schemas import CANDIDATES, ITEMS, STATEMENTS
from culturekit.records.work import Outcome, Work
from culturekit.storage.atomic import clear_folder
from culturekit.storage.tables import read_table

__all__ = ["GRAPH", "extract_from_endpoint"]

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
