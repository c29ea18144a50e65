"""From a graph and concepts to candidates: one row per artifact and concept, with its evidence."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import country
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES, EDGE_PROPERTIES, mask_of
from culturekit.kg.store import Graph, load_graph
from culturekit.kg.walk import Rules, walk
from culturekit.records.schemas import CANDIDATES, DROPS, ITEMS, STATEMENTS
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table, write_table

__all__ = ["extract"]

logger = logging.getLogger(__name__)

LISTED = ("P31", "P279", "P495", "P17", "P2012", "P361")


@dataclass(frozen=True, slots=True)
class Sighting:
    """An artifact below the roots of a concept: smallest hop, all roots, one shortest path; as nodes."""

    node: int
    hop: int
    roots: tuple[int, ...]
    path: tuple[int, ...]


def extract(work: Work, graph_folder: Path, concepts: Sequence[Concept]) -> Outcome:
    """Write the candidates of several concepts, and what was left out with its reason."""
    graph = load_graph(graph_folder)
    facts = Facts.read(graph_folder)
    work.progress.begin(len(concepts), "concepts")
    kept, dropped = [], []
    surprises: dict[str, str] = {}
    for concept in concepts:
        sightings = sight(graph, concept)
        surprises |= unexpected(graph, concept, sightings)
        rows = candidate_rows(concept, sightings, graph, facts)
        inside = in_scope(concept, rows)
        kept.append(rows.filter(inside))
        dropped.append(out_of_scope(rows.filter(~inside)))
        work.progress.advance(1)
    candidates, drops = pl.concat(kept), pl.concat(dropped)
    write_table(work.out, CANDIDATES, candidates)
    write_table(work.out, DROPS, drops)
    reasons = drops.group_by("reason").len().sort("reason")
    counts = {"candidates": candidates.height, "drops": drops.height}
    return Outcome(counts, dict(reasons.iter_rows()), {"unexpected": surprises} if surprises else {})


def unexpected(graph: Graph, concept: Concept, sightings: Sequence[Sighting]) -> dict[str, str]:
    """Say which roots reach fewer or more artifacts than their config expects."""
    reached = Counter(root for sighting in sightings for root in qids(graph, sighting.roots))
    surprises = {}
    for root in concept.roots:
        if root.expect is not None and not root.expect[0] <= reached[root.qid] <= root.expect[1]:
            low, high = root.expect
            surprises[f"{concept.concept} {root.qid}"] = f"{reached[root.qid]} artifacts, expected {low} to {high}"
            logger.warning("%s %s: %s", concept.concept, root.qid, surprises[f"{concept.concept} {root.qid}"])
    return surprises


def sight(graph: Graph, concept: Concept) -> list[Sighting]:
    """Walk from every root of a concept and bring the findings together."""
    roots = find_roots(graph, concept)
    rules = Rules(
        edge_mask=mask_of(concept.follow, EDGE_PROPERTIES),
        country_mask=mask_of(concept.country_properties, COUNTRY_PROPERTIES),
        blocked=marked(graph, [int(qid[1:]) for qid in concept.exclude.classes]),
        walked_through=marked(graph, [int(qid[1:]) for qid in roots]),
    )
    found: dict[int, Sighting] = {}
    for root in concept.roots:
        start = roots.get(root.qid)
        if start is None:
            continue
        reached = walk(graph, start, hops=concept.hops_of(root), rules=rules)
        for node, hop, path in zip(reached.nodes.tolist(), reached.hops.tolist(), reached.paths, strict=True):
            found[node] = joined(found.get(node), Sighting(node, hop, (start,), path))
    excluded = marked(graph, [int(qid[1:]) for qid in concept.exclude.items])
    return [found[node] for node in sorted(found) if not excluded[node]]


def joined(old: Sighting | None, new: Sighting) -> Sighting:
    """Join two sightings of a node; the shorter path stands, on ties the one with the smaller QIDs."""
    if old is None:
        return new
    nearer = min(old, new, key=lambda sighting: (sighting.hop, sighting.path))
    return Sighting(new.node, nearer.hop, tuple(sorted({*old.roots, *new.roots})), nearer.path)


def find_roots(graph: Graph, concept: Concept) -> dict[str, int]:
    """Find the nodes of the roots; one that the graph never mentions reaches nothing, and is said."""
    nodes = {root.qid: graph.find(int(root.qid[1:])) for root in concept.roots}
    missing = [qid for qid, node in nodes.items() if node is None]
    if len(missing) == len(nodes):
        raise UsageError(
            f"the graph mentions no root of {concept.concept}",
            found=" ".join(missing),
            hint="Check the QIDs, or ingest the dump that describes them.",
        )
    for qid in missing:
        logger.warning("the graph never mentions the root %s of %s", qid, concept.concept)
    return {qid: node for qid, node in nodes.items() if node is not None}


def marked(graph: Graph, numbers: Sequence[int]) -> NDArray[np.bool_]:
    """Mark the nodes of QID numbers; what the graph does not have needs no mark."""
    marks = np.zeros(len(graph.nodes), np.bool_)
    nodes = [node for number in numbers if (node := graph.find(number)) is not None]
    marks[nodes] = True
    return marks


@dataclass(frozen=True, slots=True)
class Facts:
    """The tables of a graph, for looking up what is said about a node."""

    items: pl.DataFrame
    statements: pl.DataFrame

    @classmethod
    def read(cls, folder: Path) -> "Facts":
        """Read what a candidate row needs; deprecated statements and those without a value say nothing."""
        statements = read_table(folder / "statements.parquet", STATEMENTS)
        stated = statements.filter(pl.col("value").is_not_null(), pl.col("rank") != "deprecated")
        return cls(read_table(folder / "items.parquet", ITEMS), stated)

    def values(self, numbers: Sequence[int]) -> Mapping[str, pl.DataFrame]:
        """Collect, for each listed property, the values that each of the items states, in order, once each."""
        wanted = self.statements.filter(pl.col("number").is_in(list(numbers))).sort("number", "property", "position")
        return {
            name: wanted.filter(pl.col("property") == name)
            .group_by("number", maintain_order=True)
            .agg(pl.format("Q{}", "value").unique(maintain_order=True).alias(name.lower()))
            for name in LISTED
        }


def candidate_rows(concept: Concept, sightings: Sequence[Sighting], graph: Graph, facts: Facts) -> pl.DataFrame:
    """Turn sightings into candidate rows."""
    numbers = [int(graph.nodes[sighting.node]) for sighting in sightings]
    evidence = pl.DataFrame(
        {
            "number": numbers,
            "concept": [concept.concept] * len(numbers),
            "hop": [sighting.hop for sighting in sightings],
            "roots": [qids(graph, sighting.roots) for sighting in sightings],
            "path": [qids(graph, sighting.path) for sighting in sightings],
        },
        schema={
            "number": pl.UInt32, "concept": pl.String, "hop": pl.UInt8,
            "roots": pl.List(pl.String), "path": pl.List(pl.String),
        },
    )  # fmt: skip
    rows = evidence.join(facts.items, on="number", how="left")
    for values in facts.values(numbers).values():
        rows = rows.join(values, on="number", how="left")
    rows = rows.with_columns(pl.col(name.lower()).fill_null([]) for name in LISTED)
    stated = [name.lower() for name in concept.country_properties]
    countries = pl.concat_list(stated).list.unique(maintain_order=True)
    return rows.with_columns(country_qids=countries).select(list(CANDIDATES.columns))


def qids(graph: Graph, nodes: Sequence[int]) -> list[str]:
    """Name nodes by their QIDs."""
    return [f"Q{graph.nodes[node]}" for node in nodes]


def in_scope(concept: Concept, rows: pl.DataFrame) -> pl.Series:
    """Tell which rows state one of the concept's countries."""
    if concept.countries == "all":
        return pl.Series([True] * rows.height, dtype=pl.Boolean)
    wanted = {qid for iso in concept.countries for qid in country(iso).qids}
    return pl.Series([not wanted.isdisjoint(stated) for stated in rows["country_qids"].to_list()], dtype=pl.Boolean)


def out_of_scope(rows: pl.DataFrame) -> pl.DataFrame:
    """Say why a candidate is left out."""
    return rows.select(
        key="qid",
        concept="concept",
        stage=pl.lit("extract"),
        reason=pl.lit("country out of scope"),
        detail=pl.col("country_qids").list.join(" "),
    )
