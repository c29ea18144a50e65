"""Fetching, hop by hop, the part of Wikidata that a concept's walk can reach."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from culturekit.kg.concepts import Concept
from culturekit.kg.dump.entities import ENTITY_STATEMENTS
from culturekit.kg.sparql import sparql_queries as queries
from culturekit.kg.sparql.sparql_client import SparqlClient, Term
from culturekit.kg.sparql.sparql_rows import StatedValue, number_of, stated_values, statement_table
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES, EDGE_PROPERTIES, flags_of, mask_of
from culturekit.records.schemas import STATEMENTS

__all__ = ["BATCH", "Crawl", "all_pages", "in_batches"]

logger = logging.getLogger(__name__)

BATCH = 100
"""Items a query asks about at once."""

Rows = list[Mapping[str, Term]]


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
    rows: Rows = []
    for start in range(0, len(ordered), BATCH):
        batch = ordered[start : start + BATCH]
        rows += all_pages(client, lambda offset, batch=batch: query(batch, offset))  # type: ignore[misc]
    return rows


@dataclass(slots=True)
class Crawl:
    """What was fetched so far; several concepts share it, and nothing is asked for twice."""

    client: SparqlClient
    statements: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=STATEMENTS.schema))
    known: set[int] = field(default_factory=set)
    asked: set[tuple[str, int]] = field(default_factory=set)

    def fetch(self, concept: Concept, advance: Callable[[int], None]) -> None:
        """Fetch everything that the walk of a concept can meet, with all its statements."""
        roots: dict[int, int] = {}
        for root in concept.roots:
            number = int(root.qid[1:])
            roots[number] = max(concept.hops_of(root), roots.get(number, 0))
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
        mask = mask_of(concept.country_properties, COUNTRY_PROPERTIES, ranks=concept.ranks, ended=concept.ended)
        return set(flags.filter((pl.col("flags") & mask) != 0)["number"].to_list())

    def followed(self, concept: Concept, parents: set[int]) -> set[int]:
        """Tell which items hang below parents by statements that the concept follows."""
        below = pl.col("value").is_in(sorted(parents))
        children = self.statements.filter(below, pl.col("property").is_in(EDGE_PROPERTIES))["number"]
        flags = flags_of(self.statements.filter(pl.col("number").is_in(children.unique().implode())), EDGE_PROPERTIES)
        mask = mask_of(concept.follow, EDGE_PROPERTIES, ranks=concept.ranks, ended=concept.ended)
        return set(flags.filter(below, (pl.col("flags") & mask) != 0)["number"].to_list())
