"""From a graph and concepts to candidates: one row per artifact and concept, with its evidence."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl

from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept
from culturekit.kg.facts import Facts, qid_of
from culturekit.kg.store import Graph, load_graph
from culturekit.kg.walk.authors_table import authors_table
from culturekit.kg.walk.authors_walk import MOST_ROWS, authors_walk
from culturekit.kg.walk.candidate_rows import candidate_rows, evidence
from culturekit.kg.walk.class_loops import count_loops
from culturekit.kg.walk.concept_search import nodes_of, search_of
from culturekit.kg.walk.country_lists import country_lists, in_scope
from culturekit.kg.walk.reached import Reached, reached_by
from culturekit.kg.walk.searches import Search
from culturekit.kg.walk.shortest_paths import shortest_paths
from culturekit.kg.walk.walk import walk
from culturekit.records.choices import Semantics
from culturekit.records.schemas import AUTHORS_ROWS, CANDIDATES, DROPS
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import write_table

__all__ = ["ExtractOptions", "extract"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """What holds for all concepts of an extraction; their own rules stand in their configs.

    `authors` semantics writes `authors_rows.parquet` too, a row per way to an artifact, at most `most_rows` of them.
    """

    semantics: Semantics = "default"
    most_rows: int = MOST_ROWS

    @classmethod
    def of(cls, semantics: Semantics, *, most_rows: int | None) -> "ExtractOptions":
        """Take what a user says; a bound on rows that nobody writes is refused."""
        if most_rows is None:
            return cls(semantics)
        if semantics != "authors":
            raise UsageError("a bound on rows means nothing here", expected="--semantics authors with --max-rows")
        return cls(semantics, most_rows)


@dataclass(frozen=True, slots=True)
class Scoped:
    """The artifacts of a concept that become rows, their countries, and what was left out."""

    reached: Reached
    countries: pl.DataFrame
    drops: pl.DataFrame


def extract(
    work: Work,
    graph_folder: Path,
    concepts: Sequence[Concept],
    options: ExtractOptions | None = None,
    *,
    successors: Mapping[int, int] = MappingProxyType({}),
) -> Outcome:
    """Write the candidates of several concepts, and what was left out with its reason.

    `successors` says by QID number which country has taken the place of which.
    """
    options = options or ExtractOptions()
    graph, facts = load_graph(graph_folder), Facts.of(graph_folder)
    work.progress.begin(len(concepts), "concepts")
    searches = [search_of(graph, concept, semantics=options.semantics) for concept in concepts]
    counts = {}
    if options.semantics == "authors":
        counts["authors_rows"] = write_authors_rows(work.out, graph, concepts, searches, options.most_rows)
    walked = walk(graph, searches)
    reached = [reached_by(walked, searches, number) for number in range(len(concepts))]
    surprises: dict[str, str] = {}
    for concept, search, own in zip(concepts, searches, reached, strict=True):
        surprises |= unexpected(graph, concept, search, own)
    scoped = [scope(graph, one, own, facts, successors) for one, own in zip(concepts, reached, strict=True)]
    paths = shortest_paths(graph, searches, walked, [own.reached for own in scoped])
    rows = []
    for concept, search, inside, own_paths in zip(concepts, searches, scoped, paths, strict=True):
        found = evidence(graph, concept, search, inside.reached, own_paths).join(inside.countries, on="number")
        rows.append(candidate_rows(concept, found, facts))
        work.progress.advance(1)
    notes = {"ground": count_loops(walked), **({"unexpected": surprises} if surprises else {})}
    return write_out(work.out, pl.concat(rows), pl.concat([own.drops for own in scoped]), counts, notes)


def write_out(
    out: Path, candidates: pl.DataFrame, drops: pl.DataFrame, counts: Mapping[str, int], notes: Mapping[str, object]
) -> Outcome:
    """Write the tables, and count."""
    write_table(out, CANDIDATES, candidates)
    write_table(out, DROPS, drops)
    reasons = drops.group_by("reason").len().sort("reason")
    valueless = int((candidates["valueless"].list.len() > 0).sum())
    totals = {"candidates": candidates.height, "drops": drops.height, **counts}
    return Outcome(totals, dict(reasons.iter_rows()), {**notes, "candidates with valueless statements": valueless})


def write_authors_rows(
    out: Path, graph: Graph, concepts: Sequence[Concept], searches: Sequence[Search], most_rows: int
) -> int:
    """Write a row for every way to an artifact; give how many there are in all."""
    tables = []
    left = most_rows
    for concept, search in zip(concepts, searches, strict=True):
        ways = authors_walk(graph, search, concept=concept.concept, most_rows=left)
        excluded = np.isin(ways.nodes, nodes_of(graph, concept.exclude.items))
        tables.append(authors_table(graph, concept.concept, ways.only(~excluded)))
        left -= tables[-1].height
    rows = pl.concat(tables)
    write_table(out, AUTHORS_ROWS, rows)
    return rows.height


def unexpected(graph: Graph, concept: Concept, search: Search, reached: Reached) -> dict[str, str]:
    """Say which roots reach fewer or more artifacts than their config expects."""
    counts = {f"Q{graph.nodes[root]}": len(own) for root, own in zip(search.roots, reached.below, strict=True)}
    surprises = {}
    for root in concept.roots:
        found = counts.get(root.qid, 0)
        if root.expect is not None and not root.expect[0] <= found <= root.expect[1]:
            low, high = root.expect
            surprises[f"{concept.concept} {root.qid}"] = f"{found} artifacts, expected {low} to {high}"
            logger.warning("%s %s: %s", concept.concept, root.qid, surprises[f"{concept.concept} {root.qid}"])
    return surprises


def scope(graph: Graph, concept: Concept, reached: Reached, facts: Facts, successors: Mapping[int, int]) -> Scoped:
    """Leave out the items that the config excludes and what states none of the concept's countries."""
    excluded = np.isin(reached.nodes, nodes_of(graph, concept.exclude.items))
    countries = country_lists(facts, graph.nodes[reached.nodes], concept, successors)
    inside = in_scope(concept, countries["country_qids"]) & ~excluded
    drops = countries.select(
        key=qid_of("number"),
        concept=pl.lit(concept.concept),
        stage=pl.lit("extract"),
        reason=pl.when(pl.Series(excluded)).then(pl.lit("excluded item")).otherwise(pl.lit("country out of scope")),
        detail=pl.col("country_qids").list.join(" "),
    )
    return Scoped(reached.only(inside), countries.filter(pl.Series(inside)), drops.filter(pl.Series(~inside)))
