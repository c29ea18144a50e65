"""Extract candidates from a graph: one row per artifact and concept, with its evidence."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.choices import Semantics
from culturekit.core.declared import Typed
from culturekit.core.digests import read_manifest
from culturekit.core.errors import UsageError
from culturekit.core.schemas import AUTHORS_ROWS, CANDIDATES
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import write_drops, write_table
from culturekit.kg.concepts import COUNTRY_PROPERTIES, ENTITY_STATEMENTS, Concept
from culturekit.kg.store import Graph, GraphTables, edge_blocks, let_go, load_graph, qid_of
from culturekit.kg.walk import WALKED, Pass, Search, Walk, groups_of, walk, walked_nodes

logger = logging.getLogger(__name__)

_MOST_ROWS = 10_000_000  # of the authors' semantics, unless more are asked for


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """What holds for all concepts of an extraction; their other rules stand in their configs."""

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
        return {"semantics": self.semantics, "most_rows": self.most_rows or _MOST_ROWS}


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
    _check_known(graph_folder, concepts)
    graph, tables = load_graph(graph_folder), GraphTables(graph_folder)
    work.progress.begin(len(concepts), "concepts")
    searches = [_search_of(graph, concept, literal=options.semantics == "authors") for concept in concepts]
    counts = {}
    if options.semantics == "authors":
        most_rows = options.most_rows or _MOST_ROWS
        counts["authors_rows"] = _write_authors_rows(work.out, graph, concepts, searches, most_rows)
    walked = walk(graph, searches)
    reached = [reached_by(walked, searches, number) for number in range(len(concepts))]
    surprises: dict[str, str] = {}
    for concept, search, found in zip(concepts, searches, reached, strict=True):
        surprises |= _unexpected(graph, concept, search, found)
    scoped = [_scope(graph, concept, found, tables, successors)
              for concept, found in zip(concepts, reached, strict=True)]  # fmt: skip
    paths = _shortest_paths(graph, searches, walked, [inside.reached for inside in scoped])
    rows = []
    for concept, search, inside, nodes in zip(concepts, searches, scoped, paths, strict=True):
        found_at = _evidence(graph, concept, search, inside.reached, nodes).join(inside.countries, on="number")
        rows.append(candidate_rows(concept, found_at, tables))
        work.progress.advance(1)
    candidates, drops = pl.concat(rows), pl.concat([inside.drops for inside in scoped])
    write_table(work.out, CANDIDATES, candidates)
    reasons = write_drops(work.out, drops)
    notes = {
        "ground": _count_loops(walked),
        **({"unexpected": surprises} if surprises else {}),
        "candidates with valueless statements": int((candidates["valueless"].list.len() > 0).sum()),
    }
    return Outcome({"candidates": candidates.height, "drops": drops.height, **counts}, reasons, notes)


def _check_known(graph_folder: Path, concepts: Sequence[Concept]) -> None:
    """Refuse rules that ask for what the dump of a graph does not say."""
    manifest = read_manifest(graph_folder)
    lacks = manifest.notes.get("lacks", ()) if manifest else ()
    ending = [concept.concept for concept in concepts if concept.ended == "drop"]
    if "qualifiers" in lacks and ending:
        raise UsageError(
            "a graph of triples does not say which statements have ended", where=str(graph_folder),
            found=f"ended: drop of {', '.join(ending)}", expected="ended: keep, or a graph of the JSON dump",
        )  # fmt: skip
    other = sorted({concept.ranks for concept in concepts} - {"truthy"})
    if "ranks" in lacks and other:
        logger.warning("the graph knows statements of best rank alone: ranks: %s is as truthy", ", ".join(other))


def _search_of(graph: Graph, concept: Concept, *, literal: bool) -> Search:
    """Say in nodes and masks what a concept looks for; roots that the graph never mentions are warned of."""
    limits = {node: hops for number, hops in concept.limits.items() if (node := graph.find(number)) is not None}
    missing = [root.qid for root in concept.roots if graph.find(int(root.qid[1:])) is None]
    if not limits:
        raise UsageError(
            f"the graph mentions no root of {concept.concept}",
            found=" ".join(missing),
            hint="Check the QIDs, or ingest the dump that describes them.",
        )
    for qid in missing:
        logger.warning("the graph never mentions the root %s of %s", qid, concept.concept)
    return Search(
        roots=tuple(sorted(limits)), hops=tuple(limits[node] for node in sorted(limits)), edge_mask=concept.edge_mask,
        country_mask=concept.country_mask, blocked=tuple(graph.find_all(concept.excluded_classes)),
        expand_artifacts=concept.expand_artifacts, literal=literal,
    )  # fmt: skip


# What a walk reached, and which of it is in scope.

_UNREACHED = np.uint8(255)


@dataclass(frozen=True, slots=True)
class Reached:
    """The artifacts of a search: nodes uint32 (n,), ascending; their smallest hops uint8 (n,).

    `nearest` is, for each, the smallest root at that hop, as its place among the roots of the search; `below[i]` are
    the places among the artifacts, ascending, of those that root i reaches.
    """

    nodes: NDArray[np.uint32]
    hops: NDArray[np.uint8]
    nearest: NDArray[np.uint16]
    below: tuple[NDArray[np.uint32], ...]

    def only(self, chosen: NDArray[np.bool_]) -> "Reached":
        """Keep some of the artifacts."""
        places = (np.cumsum(chosen) - 1).astype(np.uint32)
        below = tuple(places[each[chosen[each]]] for each in self.below)
        return Reached(self.nodes[chosen], self.hops[chosen], self.nearest[chosen], below)


def reached_by(walked: Walk, searches: Sequence[Search], number: int) -> Reached:
    """Bring together what the roots of one search reach."""
    parts = [
        (hop, root, found.for_roots(one.bits.dtype(1 << bit)).nodes)
        for one in walked.passes
        for bit, (search, root) in enumerate(zip(one.bits.searches, one.bits.places, strict=True))
        if search == number
        for hop, found in enumerate(one.found)
    ]
    marks = np.zeros(len(walked.traits), np.bool_)
    for _, _, found in parts:
        marks[found] = True
    nodes = np.flatnonzero(marks).astype(np.uint32)
    hops, nearest = np.full(len(nodes), _UNREACHED), np.zeros(len(nodes), np.uint16)
    below: list[list[NDArray[np.uint32]]] = [[np.empty(0, np.uint32)] for _ in searches[number].roots]
    for hop, root, found in sorted(parts, key=lambda part: part[:2]):
        places = np.searchsorted(nodes, found)
        first = places[hops[places] == _UNREACHED]
        hops[first], nearest[first] = hop, root
        below[root].append(places.astype(np.uint32))
    return Reached(nodes, hops, nearest, tuple(np.sort(np.concatenate(each)) for each in below))


def _unexpected(graph: Graph, concept: Concept, search: Search, reached: Reached) -> dict[str, str]:
    """Say which roots reach fewer or more artifacts than their config expects."""
    counts = {f"Q{graph.nodes[root]}": len(each) for root, each in zip(search.roots, reached.below, strict=True)}
    surprises = {}
    for root in concept.roots:
        found = counts.get(root.qid, 0)
        if root.expect is not None and not root.expect[0] <= found <= root.expect[1]:
            name, (low, high) = f"{concept.concept} {root.qid}", root.expect
            surprises[name] = f"{found} artifacts, expected {low} to {high}"
            logger.warning("%s: %s", name, surprises[name])
    return surprises


class _Scoped(NamedTuple):
    """The artifacts of a concept that become rows, their countries, and what was left out."""

    reached: Reached
    countries: pl.DataFrame
    drops: pl.DataFrame


def _scope(
    graph: Graph, concept: Concept, reached: Reached, tables: GraphTables, successors: Mapping[int, int]
) -> _Scoped:
    """Leave out the items that the config excludes and what states none of the concept's countries."""
    excluded = np.isin(reached.nodes, graph.find_all(concept.excluded_items))
    countries = _country_lists(tables, graph.nodes[reached.nodes], concept, successors)
    inside = ~excluded
    if concept.scope is not None:
        wanted = [f"Q{number}" for number in sorted(concept.scope)]
        states_one = countries["country_qids"].list.eval(pl.element().is_in(wanted)).list.any()
        inside &= states_one.fill_null(value=False).to_numpy()
    drops = countries.select(
        key=qid_of("number"), concept=pl.lit(concept.concept), stage=pl.lit("extract"),
        reason=pl.when(pl.Series(excluded)).then(pl.lit("excluded item")).otherwise(pl.lit("country out of scope")),
        detail=pl.col("country_qids").list.join(" "),
    )  # fmt: skip
    return _Scoped(reached.only(inside), countries.filter(pl.Series(inside)), drops.filter(pl.Series(~inside)))


_ITEMS_AT_ONCE = 500_000


def _country_lists(
    tables: GraphTables, numbers: NDArray[np.uint32], concept: Concept, successors: Mapping[int, int]
) -> pl.DataFrame:
    """List the countries of items, in the order of their numbers: number, country_qids; each country once.

    The properties come in the order of the concept; within one, countries come in the order that the item has. With
    the choice `P495-first`, P17 counts only where P495 says nothing.
    """
    first = concept.country_choice == "P495-first"
    properties = COUNTRY_PROPERTIES if first else concept.country_properties
    turn = {name: number for number, name in enumerate(properties)}
    parts = []
    for begin in range(0, max(len(numbers), 1), _ITEMS_AT_ONCE):
        part = numbers[begin : begin + _ITEMS_AT_ONCE]
        stated = (
            tables.statements_of(part, concept.country_properties, ranks=concept.ranks, ended=concept.ended)
            .filter(pl.col("value").is_not_null())
            .with_columns(pl.col("value").replace(successors), turn=pl.col("property").replace_strict(turn))
        )
        if first:
            stated = stated.filter(pl.col("turn") == pl.col("turn").min().over("number"))
        lists = (
            stated.sort("number", "turn", "position")
            .group_by("number", maintain_order=True)
            .agg(country_qids=qid_of("value").unique(maintain_order=True))
        )
        every = pl.DataFrame({"number": part}, schema={"number": pl.UInt32})
        parts.append(every.join(lists, on="number", how="left", maintain_order="left"))
    return pl.concat(parts).with_columns(pl.col("country_qids").fill_null([]))


def _count_loops(walked: Walk) -> Mapping[str, int]:
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


# Candidate rows: where an artifact was found, and what the dump says about it.

_ROWS_AT_ONCE = 200_000
_LIST = pl.List(pl.String)


def _evidence(
    graph: Graph, concept: Concept, search: Search, reached: Reached, paths: Sequence[NDArray[np.uint32]]
) -> pl.DataFrame:
    """Say where each artifact was found: number, concept, hop, all roots, one shortest path; numbers ascend."""
    rows = pl.DataFrame({"number": graph.nodes[reached.nodes], "hop": reached.hops}).with_row_index("row")
    roots = pl.concat(
        pl.DataFrame({"row": places}).with_columns(roots=pl.lit(f"Q{graph.nodes[root]}"))
        for root, places in zip(search.roots, reached.below, strict=True)
    )
    listed = roots.group_by("row", maintain_order=True).agg("roots")
    by_hop = [pl.DataFrame(schema={"row": pl.UInt32, "path": _LIST})]
    for hop, nodes in enumerate(paths):
        if len(nodes):
            flat = pl.select(qid_of(pl.lit(pl.Series(graph.nodes[nodes].reshape(-1))))).to_series()
            lists = flat.reshape(nodes.shape).arr.to_list()
            at_hop = np.flatnonzero(reached.hops == hop).astype(np.uint32)
            by_hop.append(pl.DataFrame({"row": at_hop, "path": lists}))
    joined = rows.join(listed, on="row", how="left").join(pl.concat(by_hop), on="row", how="left")
    return joined.sort("number").with_columns(concept=pl.lit(concept.concept)).drop("row")


def candidate_rows(concept: Concept, found: pl.DataFrame, tables: GraphTables) -> pl.DataFrame:
    """Add to the evidence and countries of artifacts what their items say, some rows at a time."""
    parts = [_rows_of(concept, part, tables) for part in found.iter_slices(_ROWS_AT_ONCE)]
    return pl.concat([pl.DataFrame(schema={**CANDIDATES.schema, "valueless": _LIST}), *parts])


def _rows_of(concept: Concept, found: pl.DataFrame, tables: GraphTables) -> pl.DataFrame:
    """Join what is stated about as many artifacts as are read at once."""
    numbers = found["number"].to_numpy()
    stated = tables.statements_of(numbers, ENTITY_STATEMENTS, ranks=concept.ranks, ended=concept.ended)
    by_number = stated.group_by("number", maintain_order=True)
    valueless = pl.col("snak").is_in(["somevalue", "novalue"])
    asked = pl.col("property").is_in((*concept.follow, *concept.country_properties))
    columns = {
        name.lower(): qid_of("value").filter((pl.col("property") == name) & pl.col("value").is_not_null())
        for name in ENTITY_STATEMENTS
    }
    columns["valueless"] = pl.format("{} {}", "property", "snak").filter(valueless & asked)
    lists = by_number.agg(column.unique(maintain_order=True).alias(name) for name, column in columns.items())
    rows = found.join(tables.items_of(numbers), on="number", how="left").join(lists, on="number", how="left")
    return rows.with_columns(pl.col(list(columns)).fill_null([])).select(*CANDIDATES.columns, "valueless")


# The shortest path to each artifact, smallest QIDs first on ties.

_ROOTS = 64  # a state is a node times _ROOTS plus the bit of the root that one has come from


@dataclass(frozen=True, slots=True)
class _ParentEdges:
    """Edges ordered by child, then parent, with their flags."""

    children: NDArray[np.uint32]
    parents: NDArray[np.uint32]
    flags: NDArray[np.uint16]

    @classmethod
    def read(cls, graph: Graph, parents: NDArray[np.uint32], children: Sequence[NDArray[np.uint32]]) -> "_ParentEdges":
        """Read the edges from some parents to themselves and to some children."""
        wanted = np.zeros(len(graph.nodes), np.bool_)
        for some in (parents, *children):
            wanted[some] = True
        kept = [(np.empty(0, np.uint64), np.empty(0, np.uint16))]
        for owners, edges in edge_blocks(graph.children_offsets, parents, graph.children, graph.edge_flags):
            below = graph.children[edges]
            inside = np.flatnonzero(wanted[below])
            pairs = (below[inside].astype(np.uint64) << np.uint64(32)) | parents[owners[inside]]
            kept.append((pairs, graph.edge_flags[edges[inside]]))
        let_go(graph.children_offsets, graph.children, graph.edge_flags)
        pairs, flags = (np.concatenate(each) for each in zip(*kept, strict=True))
        order = np.argsort(pairs)
        pairs = pairs[order]
        return cls((pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32), flags[order])

    def above(self, nodes: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint16]]:
        """Give the edges into each of some nodes: its place among them, the parent, the flags."""
        starts = np.searchsorted(self.children, nodes, "left")
        lengths = np.searchsorted(self.children, nodes, "right") - starts
        owners = np.repeat(np.arange(len(nodes)), lengths)
        edges = np.arange(len(owners)) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
        return owners, self.parents[edges], self.flags[edges]


@dataclass(frozen=True, slots=True)
class _Level:
    """The states of one hop, ascending. `owners` and `above` pair places in `states` with places one hop before."""

    states: NDArray[np.int64]
    owners: NDArray[np.int64]
    above: NDArray[np.int64]


def _shortest_paths(
    graph: Graph, searches: Sequence[Search], walked: Walk, reached: Sequence[Reached]
) -> list[list[NDArray[np.uint32]]]:
    """Find the paths to what each search has reached, from its nearest root.

    Gives for each search, for each hop h, an array (n, h + 1) of nodes: the n artifacts at that hop, in their order.
    """
    most = max((int(each.hops.max()) for each in reached if len(each.nodes)), default=0)
    paths = [[np.zeros((int((each.hops == h).sum()), h + 1), np.uint32) for h in range(most + 1)] for each in reached]
    edges = _ParentEdges.read(graph, walked_nodes(walked.traits), [each.nodes for each in reached])
    for one in walked.passes:
        masks = np.array([searches[number].edge_mask for number in one.bits.searches], np.uint16)
        rows = [[_states_of(one, number, each, hop) for hop in range(most + 1)] for number, each in enumerate(reached)]
        wanted = [np.concatenate([states for states, _ in at_hop]) for at_hop in zip(*rows, strict=True)]
        levels = _go_back(one, masks, edges, wanted)
        best = _go_forward(levels)
        for number, of_search in enumerate(rows):
            for hop, (states, places) in enumerate(of_search):
                paths[number][hop][places] = _trace_back(levels, best, hop, states)
    return paths


def _states_of(one: Pass, number: int, reached: Reached, hop: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the artifacts of a search at a hop whose nearest root is in a pass: states, and places among those at it."""
    bits = np.full(int(reached.nearest.max(initial=0)) + 1, -1)
    for bit, (search, root) in enumerate(zip(one.bits.searches, one.bits.places, strict=True)):
        if search == number and root < len(bits):
            bits[root] = bit
    at_hop = reached.hops == hop
    bit_of = bits[reached.nearest[at_hop]]
    places = np.flatnonzero(bit_of >= 0)
    return reached.nodes[at_hop][places].astype(np.int64) * _ROOTS + bit_of[places], places


def _go_back(
    one: Pass, masks: NDArray[np.uint16], edges: _ParentEdges, wanted: Sequence[NDArray[np.int64]]
) -> list[_Level]:
    """Find the states that lie on shortest paths to the wanted ones, from the last hop to the roots."""
    nothing = np.empty(0, np.int64)
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
    needed = nothing
    for hop in range(len(wanted) - 1, 0, -1):
        states = np.unique(np.concatenate([needed, wanted[hop]]))
        owners, parents, flags = edges.above((states // _ROOTS).astype(np.uint32))
        bits = states[owners] % _ROOTS
        there = (one.walked[hop - 1].at(parents).astype(np.uint64) >> bits.astype(np.uint64)) & np.uint64(1) != 0
        good = there & ((flags & masks[bits]) != 0)
        before = parents[good].astype(np.int64) * _ROOTS + bits[good]
        found.append((states, owners[good], before))
        needed = np.unique(before)
    levels = [_Level(needed, nothing, nothing)]
    for states, owners, before in reversed(found):
        levels.append(_Level(states, owners, np.searchsorted(levels[-1].states, before)))
    return levels


def _go_forward(levels: Sequence[_Level]) -> list[NDArray[np.int64]]:
    """Choose for each state the index of its predecessor on the smallest path."""
    best = [np.empty(0, np.int64)]
    order = np.arange(len(levels[0].states))
    for level in levels[1:]:
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        firsts = np.flatnonzero(np.diff(level.owners, prepend=-1))
        smallest = np.minimum.reduceat(rank[level.above], firsts) if len(firsts) else firsts
        best.append(order[smallest])
        order = np.lexsort((level.states, smallest))
    return best


def _trace_back(
    levels: Sequence[_Level], best: Sequence[NDArray[np.int64]], hop: int, states: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Write the paths that end in states of a hop, root first."""
    paths = np.empty((len(states), hop + 1), np.uint32)
    places = np.searchsorted(levels[hop].states, states)
    for step in range(hop, -1, -1) if len(states) else ():
        paths[:, step] = levels[step].states[places] // _ROOTS
        places = best[step][places] if step else places
    return paths


# The authors' semantics: a row for every way to an artifact, as the published code writes them.


def _write_authors_rows(
    out: Path, graph: Graph, concepts: Sequence[Concept], searches: Sequence[Search], most_rows: int
) -> int:
    """Write a row for every way to an artifact; return how many there are in all."""
    parts = []
    left = most_rows
    for concept, search in zip(concepts, searches, strict=True):
        ways = authors_walk(graph, search, concept=concept.concept, most_rows=left)
        excluded = pl.col("qid").is_in(graph.find_all(concept.excluded_items))
        parts.append(one_by_one(ways.filter(~excluded)).with_columns(concept=pl.lit(concept.concept)))
        left -= parts[-1].height
    rows = pl.concat(parts)
    names = ("root", "parent", "qid")
    rows = rows.with_columns(pl.Series(name, graph.nodes[rows[name].to_numpy()]) for name in names)
    write_table(out, AUTHORS_ROWS, rows.with_columns(map(qid_of, names)).select(list(AUTHORS_ROWS.columns)))
    return rows.height


def authors_walk(graph: Graph, search: Search, *, concept: str, most_rows: int = _MOST_ROWS) -> pl.DataFrame:
    """Walk every way; refuse as soon as there are more rows than are wanted.

    Gives ways to artifacts, by root, last parent and artifact as nodes, and hop, and how many such ways there are.
    Counts are float64: exact up to 2**53, far above any number of rows that is written, and never wrapping round.
    """
    children, flags, offsets = map(np.asarray, (graph.children, graph.edge_flags, graph.children_offsets))
    blocked = np.zeros(len(graph.nodes), np.bool_)
    blocked[list(search.blocked)] = True
    limits = pl.DataFrame({"root": search.roots, "limit": search.hops}, schema={"root": pl.UInt32, "limit": pl.Int64})
    frontier = limits.select("root", node="root", count=pl.lit(1.0))
    kinds = {"root": pl.UInt32, "parent": pl.UInt32, "qid": pl.UInt32, "hop": pl.UInt8, "count": pl.Float64}
    found = [pl.DataFrame(schema=kinds)]
    rows = 0.0
    for hop in range(1, max(search.hops) + 1):
        frontier = frontier.join(limits.filter(pl.col("limit") >= hop), on="root", how="semi", maintain_order="left")
        onward = [frontier.clear()]
        for owners, edges in edge_blocks(offsets, frontier["node"].to_numpy(), children, flags):
            kept = np.flatnonzero((flags[edges] & search.edge_mask) != 0)
            kept = kept[~blocked[children[edges[kept]]]]
            nodes = children[edges[kept]].astype(np.uint32)
            artifact = pl.Series((graph.country_flags[nodes] & search.country_mask) != 0)
            ways = frontier[owners[kept]].select(
                "root", pl.col("node").alias("parent"), pl.Series("qid", nodes), pl.lit(hop, pl.UInt8).alias("hop"),
                "count",
            )  # fmt: skip
            found.append(ways.filter(artifact))
            rows += float(found[-1]["count"].sum())
            if rows > most_rows:
                raise UsageError(
                    f"too many ways to the artifacts of {concept}: the authors' semantics writes a row for each",
                    expected=f"at most {most_rows:,} rows",
                    found=f"{rows:,.0f} or more by hop {hop}",
                    hint="Take fewer hops or roots, or allow more rows with --max-rows.",
                )
            onward.append(
                ways.filter(~artifact | search.expand_artifacts).select("root", pl.col("qid").alias("node"), "count")
            )
        frontier = pl.concat(onward).group_by("root", "node").agg(pl.col("count").sum()).sort("root", "node")
    let_go(graph.children_offsets, graph.children, graph.edge_flags)
    return pl.concat(found)


def one_by_one(ways: pl.DataFrame) -> pl.DataFrame:
    """Write out every way by itself, with its number among those that end alike, from 1."""
    copies = pl.int_ranges(1, pl.col("count").cast(pl.UInt32) + 1, dtype=pl.UInt32)
    return ways.with_columns(copy=copies).drop("count").explode("copy")
