"""Candidates from a SPARQL endpoint: what the walk can reach is fetched into a small graph, and the same walk is run.

So every rule, from ranks to paths, is the code that runs on a dump.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import polars as pl

from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept, Root
from culturekit.kg.dump.build_store import store_rows
from culturekit.kg.sparql import sparql_queries as queries
from culturekit.kg.sparql.sparql_client import SparqlClient
from culturekit.kg.sparql.sparql_crawl import Crawl, in_batches
from culturekit.kg.sparql.sparql_rows import StatedValue, best_value, image_of, number_of, place_of, terms_of
from culturekit.kg.walk.extract import ExtractOptions, extract
from culturekit.records.schemas import CANDIDATES, ITEMS
from culturekit.records.work import Outcome, Work
from culturekit.storage.atomic import clear_folder
from culturekit.storage.tables import read_table

__all__ = ["GRAPH", "extract_from_endpoint"]

GRAPH = "graph"
"""The folder, beside the candidates, that holds the fetched part of Wikidata as a graph store."""

MEDIA = ("P18", "P625")
LANGUAGE = re.compile(r"^[A-Za-z]+(-[A-Za-z0-9]+)*$")


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
    order = tuple(dict.fromkeys(("en", "mul", *languages)))
    terms = terms_of(in_batches(client, numbers, lambda batch, at: queries.terms(batch, order, at)), order)
    rows = in_batches(client, numbers, queries.counts)
    counts = {number_of(row["item"]): int(row["count"].value) for row in rows}
    wiki = languages[0].lower().replace("_", "-")
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
    empty = {"aliases": [], "sitelinks": 0, "file": 0, "member": 0, "line": 0, "offset": 0}
    rows = [{**empty, **details.get(number, {}), "qid": f"Q{number}", "number": number} for number in numbers]
    return pl.DataFrame(rows, schema=ITEMS.schema)
