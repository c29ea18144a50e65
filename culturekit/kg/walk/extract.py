"""From a graph and concepts to candidates: one row per artifact and concept, with its evidence."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import country
from culturekit.kg.facts import Facts, check_known, qid_of
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES
from culturekit.kg.store import Graph, load_graph
from culturekit.kg.walk.authors_walk import MOST_ROWS, Ways, authors_walk
from culturekit.kg.walk.candidate_rows import Reached, candidate_rows, evidence, reached_by
from culturekit.kg.walk.searches import WALKED, Search
from culturekit.kg.walk.shortest_paths import shortest_paths
from culturekit.kg.walk.walk import Walk, groups_of, walk
from culturekit.records.choices import Semantics
from culturekit.records.schemas import AUTHORS_ROWS, CANDIDATES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage_command import Typed
from culturekit.storage.tables import write_drops, write_table

__all__ = ["ExtractOptions", "extract"]

logger = logging.getLogger(__name__)

ITEMS_AT_ONCE = 500_000


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """What holds for all concepts of an extraction; their own rules stand in their configs."""

    semantics: Annotated[
        Semantics,
        Field(description="authors: write authors_rows.parquet too, a row for every way, as the published code does."),
    ] = "default"
    most_rows: Annotated[
        int | None,
        Field(ge=1, description="With --semantics authors: more rows than that are refused. [10 million]"),
        Typed("max-rows"),
    ] = None

    def __post_init__(self) -> None:
        """Refuse a bound on rows that nobody writes."""
        if self.most_rows is not None and self.semantics != "authors":
            raise UsageError("a bound on rows means nothing here", expected="--semantics authors with --max-rows")

    def settings(self) -> dict[str, object]:
        """Give what stands in a manifest."""
        return {"semantics": self.semantics, "most_rows": self.most_rows or MOST_ROWS}


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
    check_known(graph_folder, concepts)
    graph, facts = load_graph(graph_folder), Facts.of_graph(graph_folder)
    work.progress.begin(len(concepts), "concepts")
    searches = [search_of(graph, concept, semantics=options.semantics) for concept in concepts]
    counts = {}
    if options.semantics == "authors":
        counts["authors_rows"] = write_authors_rows(work.out, graph, concepts, searches, options.most_rows or MOST_ROWS)
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
    reasons = write_drops(out, drops)
    valueless = int((candidates["valueless"].list.len() > 0).sum())
    totals = {"candidates": candidates.height, "drops": drops.height, **counts}
    return Outcome(totals, reasons, {**notes, "candidates with valueless statements": valueless})


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


def authors_table(graph: Graph, concept: str, ways: Ways) -> pl.DataFrame:
    """Write out every way of a concept; those that end alike are numbered."""
    ones, copies = ways.one_by_one()
    numbers = {"root": ones.roots, "parent": ones.parents, "qid": ones.nodes}
    rows = pl.DataFrame({name: graph.nodes[nodes] for name, nodes in numbers.items()}).with_columns(
        pl.Series("hop", ones.hops), pl.Series("copy", copies), concept=pl.lit(concept)
    )
    return rows.with_columns(qid_of(name).alias(name) for name in numbers).select(list(AUTHORS_ROWS.columns))


def count_loops(walked: Walk) -> Mapping[str, int]:
    """Count among the nodes walked on from, along edges that count for some concept.

    `self_loops` are nodes stated to be below themselves, `cycles` groups of two or more nodes that are each below
    every other, and `nodes_in_cycles` the nodes in such groups. A walk passes each of them once per root.
    """
    parents, children = walked.class_edges
    both = (walked.traits[children] & WALKED) != 0
    parents, children = parents[both], children[both]
    loops = parents == children
    _, group = groups_of(parents[~loops], children[~loops])
    sizes = np.bincount(group)
    cycles = sizes > 1
    return {"self_loops": int(loops.sum()), "cycles": int(cycles.sum()), "nodes_in_cycles": int(sizes[cycles].sum())}


def search_of(graph: Graph, concept: Concept, *, semantics: Semantics = "default") -> Search:
    """Say in nodes and masks what a concept looks for."""
    limits = {node: hops for number, hops in concept.limits.items() if (node := graph.find(number)) is not None}
    missing = [root.qid for root in concept.roots if graph.find(int(root.qid[1:])) is None]
    say_missing(concept, missing, any_there=bool(limits))
    return Search(
        roots=tuple(sorted(limits)),
        hops=tuple(limits[node] for node in sorted(limits)),
        edge_mask=concept.edge_mask,
        country_mask=concept.country_mask,
        blocked=tuple(nodes_of(graph, concept.exclude.classes)),
        expand_artifacts=concept.expand_artifacts,
        literal=semantics == "authors",
    )


def say_missing(concept: Concept, missing: Sequence[str], *, any_there: bool) -> None:
    """Warn of roots that the graph never mentions; without any root there is nothing to do."""
    if not any_there:
        raise UsageError(
            f"the graph mentions no root of {concept.concept}",
            found=" ".join(missing),
            hint="Check the QIDs, or ingest the dump that describes them.",
        )
    for qid in missing:
        logger.warning("the graph never mentions the root %s of %s", qid, concept.concept)


def nodes_of(graph: Graph, qids: Sequence[str]) -> list[int]:
    """Find the nodes of QIDs, ascending; what the graph does not have is left out."""
    nodes = (graph.find(int(qid[1:])) for qid in qids)
    return sorted({node for node in nodes if node is not None})


def country_lists(
    facts: Facts, numbers: NDArray[np.uint32], concept: Concept, successors: Mapping[int, int]
) -> pl.DataFrame:
    """List the countries of items, in the order of their numbers: number, country_qids; each country once.

    The properties come in the order of the concept; within one, countries come in the order that the item has. With
    the choice `P495-first`, P17 counts only where P495 says nothing.
    """
    parts = [
        lists_of(facts, numbers[begin : begin + ITEMS_AT_ONCE], concept, successors)
        for begin in range(0, max(len(numbers), 1), ITEMS_AT_ONCE)
    ]
    return pl.concat(parts)


def lists_of(
    facts: Facts, numbers: NDArray[np.uint32], concept: Concept, successors: Mapping[int, int]
) -> pl.DataFrame:
    """List the countries of as many items as are read at once."""
    first = concept.country_choice == "P495-first"
    properties = COUNTRY_PROPERTIES if first else concept.country_properties
    turn = {name: place for place, name in enumerate(properties)}
    stated = (
        facts.statements(numbers, concept.country_properties, ranks=concept.ranks, ended=concept.ended)
        .filter(pl.col("value").is_not_null())
        .with_columns(turn=pl.col("property").replace_strict(turn, return_dtype=pl.UInt8))
    )
    if first:
        stated = stated.filter(pl.col("turn") == pl.col("turn").min().over("number"))
    if successors:
        stated = stated.with_columns(pl.col("value").replace(successors))
    lists = (
        stated.sort("number", "turn", "position")
        .group_by("number", maintain_order=True)
        .agg(country_qids=qid_of("value").unique(maintain_order=True))
    )
    every = pl.DataFrame({"number": numbers}, schema={"number": pl.UInt32})
    return every.join(lists, on="number", how="left", maintain_order="left").with_columns(
        pl.col("country_qids").fill_null([])
    )


def in_scope(concept: Concept, country_qids: pl.Series) -> NDArray[np.bool_]:
    """Tell which lists have one of the concept's countries."""
    if concept.countries == "all":
        return np.ones(len(country_qids), np.bool_)
    wanted = sorted({qid for iso in concept.countries for qid in country(iso).qids})
    inside = country_qids.list.eval(pl.element().is_in(wanted)).list.any().fill_null(value=False)
    return inside.to_numpy()
