"""From a graph and concepts to candidates: one row per artifact and concept, with its evidence."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.choices import Semantics
from culturekit.core.errors import UsageError
from culturekit.core.schemas import AUTHORS_ROWS, CANDIDATES
from culturekit.core.stage_command import Typed
from culturekit.core.tables import write_drops, write_table
from culturekit.core.work import Outcome, Work
from culturekit.kg.concepts import COUNTRY_PROPERTIES, Concept
from culturekit.kg.countries import country
from culturekit.kg.dump.entities import ENTITY_STATEMENTS
from culturekit.kg.store import Facts, Graph, check_known, edge_blocks, let_go, load_graph, qid_of
from culturekit.kg.walk.walk import WALKED, Pass, Search, Walk, groups_of, walk, walked_nodes

# What a walk reached, and candidate rows: where an artifact was found, and what the dump says about it.

UNREACHED = np.uint8(255)


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
        below = tuple(places[own[chosen[own]]] for own in self.below)
        return Reached(self.nodes[chosen], self.hops[chosen], self.nearest[chosen], below)


def reached_by(walked: Walk, searches: Sequence[Search], number: int) -> Reached:
    """Bring together what the roots of one search reach."""
    roots = searches[number].roots
    parts = [
        (hop, root, found.for_roots(one.bits.dtype(1 << place)).nodes)
        for one in walked.passes
        for place, (own, root) in enumerate(zip(one.bits.searches, one.bits.places, strict=True))
        if own == number
        for hop, found in enumerate(one.found)
    ]
    marks = np.zeros(len(walked.traits), np.bool_)
    for _, _, found in parts:
        marks[found] = True
    nodes = np.flatnonzero(marks).astype(np.uint32)
    hops, nearest = np.full(len(nodes), UNREACHED), np.zeros(len(nodes), np.uint16)
    below: list[list[NDArray[np.uint32]]] = [[] for _ in roots]
    for hop, root, found in sorted(parts, key=lambda part: part[:2]):
        places = np.searchsorted(nodes, found)
        first = places[hops[places] == UNREACHED]
        hops[first], nearest[first] = hop, root
        below[root].append(places.astype(np.uint32))
    nothing = np.empty(0, np.uint32)
    return Reached(nodes, hops, nearest, tuple(np.sort(np.concatenate([nothing, *own])) for own in below))


ROWS_AT_ONCE = 200_000
LIST = pl.List(pl.String)


def evidence(
    graph: Graph, concept: Concept, search: Search, reached: Reached, paths: Sequence[NDArray[np.uint32]]
) -> pl.DataFrame:
    """Say where each artifact was found: number, concept, hop, all roots, one shortest path; numbers ascend."""
    rows = pl.DataFrame({"number": graph.nodes[reached.nodes], "hop": reached.hops}).with_row_index("row")
    roots = pl.concat(
        [
            pl.DataFrame({"row": places}).with_columns(roots=pl.lit(f"Q{graph.nodes[root]}"))
            for root, places in zip(search.roots, reached.below, strict=True)
        ]
    )
    by_hop = [
        pl.DataFrame(
            {
                "row": np.flatnonzero(reached.hops == hop).astype(np.uint32),
                "path": qid_lists(graph.nodes[own]),
            },
            schema={"row": pl.UInt32, "path": LIST},
        )
        for hop, own in enumerate(paths)
    ]
    listed = roots.group_by("row", maintain_order=True).agg("roots")
    return (
        rows.join(listed, on="row", how="left")
        .join(pl.concat(by_hop), on="row", how="left")
        .sort("number")
        .with_columns(concept=pl.lit(concept.concept))
        .drop("row")
    )


def qid_lists(numbers: NDArray[np.uint32]) -> pl.Series:
    """Write a table of QID numbers as a column of lists."""
    if len(numbers) == 0:
        return pl.Series([], dtype=LIST)
    flat = pl.select(qid_of(pl.lit(pl.Series(numbers.reshape(-1))))).to_series()
    return flat.reshape(numbers.shape).arr.to_list()


def candidate_rows(concept: Concept, found: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Add to the evidence and countries of artifacts what their items say, some rows at a time."""
    parts = [rows_of(concept, part, facts) for part in found.iter_slices(ROWS_AT_ONCE)]
    return pl.concat([pl.DataFrame(schema={**CANDIDATES.schema, "valueless": LIST}), *parts])


def rows_of(concept: Concept, found: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Join what is said about as many artifacts as are read at once."""
    numbers = found["number"].to_numpy()
    stated = facts.statements(numbers, ENTITY_STATEMENTS, ranks=concept.ranks, ended=concept.ended)
    rows = found.join(facts.items(numbers), on="number", how="left")
    for name in ENTITY_STATEMENTS:
        own = stated.filter(pl.col("property") == name, pl.col("value").is_not_null())
        values = own.group_by("number", maintain_order=True).agg(
            qid_of("value").unique(maintain_order=True).alias(name.lower())
        )
        rows = rows.join(values, on="number", how="left")
    asked = (*concept.follow, *concept.country_properties)
    without = stated.filter(pl.col("snak").is_in(["somevalue", "novalue"]), pl.col("property").is_in(asked))
    said = pl.format("{} {}", "property", "snak").unique(maintain_order=True).alias("valueless")
    rows = rows.join(without.group_by("number", maintain_order=True).agg(said), on="number", how="left")
    return rows.with_columns(pl.col([*map(str.lower, ENTITY_STATEMENTS), "valueless"]).fill_null([])).select(
        *CANDIDATES.columns, "valueless"
    )


_ROOTS = 64
"""A state is a node times _ROOTS plus the bit of the root that one has come from."""


@dataclass(frozen=True, slots=True)
class ParentEdges:
    """Edges ordered by child, then parent, with their flags."""

    children: NDArray[np.uint32]
    parents: NDArray[np.uint32]
    flags: NDArray[np.uint16]

    @classmethod
    def read(cls, graph: Graph, parents: NDArray[np.uint32], children: Sequence[NDArray[np.uint32]]) -> "ParentEdges":
        """Read the edges from some parents to themselves and to some children."""
        wanted = np.zeros(len(graph.nodes), np.bool_)
        for some in (parents, *children):
            wanted[some] = True
        kept: list[tuple[NDArray[np.uint64], NDArray[np.uint16]]] = []
        for owners, edges in edge_blocks(graph.children_offsets, parents, graph.children, graph.edge_flags):
            below = graph.children[edges]
            own = np.flatnonzero(wanted[below])
            pairs = (below[own].astype(np.uint64) << np.uint64(32)) | parents[owners[own]]
            kept.append((pairs, graph.edge_flags[edges[own]]))
        let_go(graph.children_offsets, graph.children, graph.edge_flags)
        pairs = np.concatenate([np.empty(0, np.uint64), *(pairs for pairs, _ in kept)])
        flags = np.concatenate([np.empty(0, np.uint16), *(flags for _, flags in kept)])
        order = np.argsort(pairs)
        pairs = pairs[order]
        return cls((pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32), flags[order])

    def above(self, nodes: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint16]]:
        """Give the edges into each of some nodes: its place among them, the parent, the flags."""
        starts = np.searchsorted(self.children, nodes, "left")
        lengths = np.searchsorted(self.children, nodes, "right") - starts
        owners = np.repeat(np.arange(len(nodes)), lengths)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        places = starts[owners] + within
        return owners, self.parents[places], self.flags[places]


@dataclass(frozen=True, slots=True)
class Level:
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
    most = max((int(own.hops.max()) for own in reached if len(own.nodes)), default=0)
    paths = [[np.zeros((int((own.hops == h).sum()), h + 1), np.uint32) for h in range(most + 1)] for own in reached]
    edges = ParentEdges.read(graph, walked_nodes(walked.traits), [own.nodes for own in reached])
    for one in walked.passes:
        masks = np.array([searches[number].edge_mask for number in one.bits.searches], np.uint16)
        rows = [[_rows_of(one, number, own, hop) for hop in range(most + 1)] for number, own in enumerate(reached)]
        wanted = [np.concatenate([states for states, _ in own]) for own in zip(*rows, strict=True)]
        levels = _go_back(one, masks, edges, wanted)
        best = _go_forward(levels)
        for number, own in enumerate(rows):
            for hop, (states, places) in enumerate(own):
                paths[number][hop][places] = _trace_back(levels, best, hop, states)
    return paths


def _rows_of(one: Pass, number: int, reached: Reached, hop: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the artifacts of a search at a hop whose nearest root is in a pass: states, and places among those at it."""
    bits = np.full(int(reached.nearest.max(initial=0)) + 1, -1)
    for bit, (own, root) in enumerate(zip(one.bits.searches, one.bits.places, strict=True)):
        if own == number and root < len(bits):
            bits[root] = bit
    at_hop = reached.hops == hop
    own_bits = bits[reached.nearest[at_hop]]
    places = np.flatnonzero(own_bits >= 0)
    return reached.nodes[at_hop][places].astype(np.int64) * _ROOTS + own_bits[places], places


def _go_back(
    one: Pass, masks: NDArray[np.uint16], edges: ParentEdges, wanted: Sequence[NDArray[np.int64]]
) -> list[Level]:
    """Find the states that lie on shortest paths to the wanted ones, from the last hop to the roots."""
    nothing = np.empty(0, np.int64)
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
    needed = nothing
    for hop in range(len(wanted) - 1, 0, -1):
        states = np.unique(np.concatenate([needed, wanted[hop]]))
        if len(states) == 0:
            found.append((nothing, nothing, nothing))
            continue
        owners, parents, flags = edges.above((states // _ROOTS).astype(np.uint32))
        bits = states[owners] % _ROOTS
        there = (one.walked[hop - 1].at(parents).astype(np.uint64) >> bits.astype(np.uint64)) & np.uint64(1) != 0
        good = there & ((flags & masks[bits]) != 0)
        before = parents[good].astype(np.int64) * _ROOTS + bits[good]
        found.append((states, owners[good], before))
        needed = np.unique(before)
    levels = [Level(needed, nothing, nothing)]
    for states, owners, before in reversed(found):
        levels.append(Level(states, owners, np.searchsorted(levels[-1].states, before)))
    return levels


def _go_forward(levels: Sequence[Level]) -> list[NDArray[np.int64]]:
    """Choose for each state the place, one hop before, of the state that its smallest path comes from."""
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
    levels: Sequence[Level], best: Sequence[NDArray[np.int64]], hop: int, states: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Write the paths that end in states of a hop, root first."""
    paths = np.empty((len(states), hop + 1), np.uint32)
    places = np.searchsorted(levels[hop].states, states) if hop else np.empty(0, np.int64)
    for step in range(hop, -1, -1):
        if len(states):
            paths[:, step] = levels[step].states[places] // _ROOTS
            places = best[step][places] if step else places
    return paths


_MOST_ROWS = 10_000_000
"""As many rows as are written unless more are asked for."""


class Ways(NamedTuple):
    """Ways to artifacts: root, last parent and artifact as nodes uint32 (n,), hops (n,), how many ways (n,)."""

    roots: NDArray[np.uint32]
    parents: NDArray[np.uint32]
    nodes: NDArray[np.uint32]
    hops: NDArray[np.uint8]
    counts: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: list["Ways"]) -> "Ways":
        """Put parts one behind the other."""
        nothing = np.empty(0, np.uint32)
        empty = cls(nothing, nothing, nothing, np.empty(0, np.uint8), np.empty(0))
        return cls(*map(np.concatenate, zip(empty, *parts, strict=True)))

    def one_by_one(self) -> tuple["Ways", NDArray[np.uint32]]:
        """Write out every way by itself, with its number among those that end alike, from 1."""
        counts = self.counts.astype(np.int64)
        every = np.repeat(np.arange(len(counts)), counts)
        copies = np.arange(len(every)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
        return self.only(every)._replace(counts=np.ones(len(every))), copies.astype(np.uint32)

    def only(self, chosen: NDArray[np.bool_ | np.int64]) -> "Ways":
        """Keep some of the ways."""
        kept: Iterator[Any] = (own[chosen] for own in self)
        return Ways(*kept)


class Frontier(NamedTuple):
    """Where the ways stand: a root and a node, each pair once, and how many ways have come there.

    Counts are float64: exact up to 2**53, far above any number of rows that is written, and never wrapping round.
    """

    roots: NDArray[np.uint32]
    nodes: NDArray[np.uint32]
    counts: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: list["Frontier"]) -> "Frontier":
        """Bring parts together, adding up the ways of each pair."""
        nothing = np.empty(0, np.uint32)
        roots = np.concatenate([nothing, *(part.roots for part in parts)])
        nodes = np.concatenate([nothing, *(part.nodes for part in parts)])
        counts = np.concatenate([np.empty(0), *(part.counts for part in parts)])
        pairs, place = np.unique((roots.astype(np.uint64) << np.uint64(32)) | nodes, return_inverse=True)
        sums = np.bincount(place, counts, len(pairs)).astype(np.float64)
        return cls((pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32), sums)

    def only(self, chosen: NDArray[np.bool_]) -> "Frontier":
        """Keep some of the pairs."""
        kept: Iterator[Any] = (own[chosen] for own in self)
        return Frontier(*kept)


def authors_walk(graph: Graph, search: Search, *, concept: str, most_rows: int = _MOST_ROWS) -> Ways:
    """Walk every way; refuse as soon as there are more rows than are wanted."""
    roots = np.array(search.roots, np.uint32)
    limits = np.array(search.hops)
    blocked = np.zeros(len(graph.nodes), np.bool_)
    blocked[list(search.blocked)] = True
    frontier = Frontier(roots, roots, np.ones(len(roots)))
    found: list[Ways] = []
    rows = 0
    for hop in range(1, int(limits.max()) + 1):
        frontier = frontier.only(limits[np.searchsorted(roots, frontier.roots)] >= hop)
        onward: list[Frontier] = []
        for artifacts, others in step(graph, search, frontier, blocked, hop):
            total = rows + float(artifacts.counts.sum())
            if total > most_rows:
                raise _too_many(concept, hop, total, most_rows)
            rows = int(total)
            found.append(artifacts)
            onward.append(others)
        frontier = Frontier.joined(onward)
    let_go(graph.children_offsets, graph.children, graph.edge_flags)
    return Ways.joined(found)


def step(
    graph: Graph, search: Search, frontier: Frontier, blocked: NDArray[np.bool_], hop: int
) -> Iterator[tuple[Ways, Frontier]]:
    """Follow the edges of a frontier, block by block: the ways that end in artifacts, and those that go on."""
    children, flags, countries = map(np.asarray, (graph.children, graph.edge_flags, graph.country_flags))
    for owners, edges in edge_blocks(np.asarray(graph.children_offsets), frontier.nodes, children, flags):
        kept = np.flatnonzero((flags[edges] & search.edge_mask) != 0)
        kept = kept[~blocked[children[edges[kept]]]]
        owners, nodes = owners[kept], children[edges[kept]].astype(np.uint32)
        artifact = (countries[nodes] & search.country_mask) != 0
        hops = np.full(len(nodes), hop, np.uint8)
        ways = Ways(frontier.roots[owners], frontier.nodes[owners], nodes, hops, frontier.counts[owners])
        onward = Frontier(ways.roots, nodes, ways.counts)
        yield ways.only(artifact), onward if search.expand_artifacts else onward.only(~artifact)


def _too_many(concept: str, hop: int, rows: float, most_rows: int) -> UsageError:
    """Say that the rows of all ways are more than anybody wants to write."""
    return UsageError(
        f"too many ways to the artifacts of {concept}: the authors' semantics writes a row for each",
        expected=f"at most {most_rows:,} rows",
        found=f"{rows:,.0f} or more by hop {hop}",
        hint="Take fewer hops or roots, or allow more rows with --max-rows.",
    )


logger = logging.getLogger(__name__)

_ITEMS_AT_ONCE = 500_000


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
        return {"semantics": self.semantics, "most_rows": self.most_rows or _MOST_ROWS}


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
    searches = [_search_of(graph, concept, semantics=options.semantics) for concept in concepts]
    counts = {}
    if options.semantics == "authors":
        counts["authors_rows"] = _write_authors_rows(
            work.out, graph, concepts, searches, options.most_rows or _MOST_ROWS
        )
    walked = walk(graph, searches)
    reached = [reached_by(walked, searches, number) for number in range(len(concepts))]
    surprises: dict[str, str] = {}
    for concept, search, own in zip(concepts, searches, reached, strict=True):
        surprises |= _unexpected(graph, concept, search, own)
    scoped = [_scope(graph, one, own, facts, successors) for one, own in zip(concepts, reached, strict=True)]
    paths = _shortest_paths(graph, searches, walked, [own.reached for own in scoped])
    rows = []
    for concept, search, inside, own_paths in zip(concepts, searches, scoped, paths, strict=True):
        found = evidence(graph, concept, search, inside.reached, own_paths).join(inside.countries, on="number")
        rows.append(candidate_rows(concept, found, facts))
        work.progress.advance(1)
    notes = {"ground": _count_loops(walked), **({"unexpected": surprises} if surprises else {})}
    return _write_out(work.out, pl.concat(rows), pl.concat([own.drops for own in scoped]), counts, notes)


def _write_out(
    out: Path, candidates: pl.DataFrame, drops: pl.DataFrame, counts: Mapping[str, int], notes: Mapping[str, object]
) -> Outcome:
    """Write the tables, and count."""
    write_table(out, CANDIDATES, candidates)
    reasons = write_drops(out, drops)
    valueless = int((candidates["valueless"].list.len() > 0).sum())
    totals = {"candidates": candidates.height, "drops": drops.height, **counts}
    return Outcome(totals, reasons, {**notes, "candidates with valueless statements": valueless})


def _write_authors_rows(
    out: Path, graph: Graph, concepts: Sequence[Concept], searches: Sequence[Search], most_rows: int
) -> int:
    """Write a row for every way to an artifact; give how many there are in all."""
    tables = []
    left = most_rows
    for concept, search in zip(concepts, searches, strict=True):
        ways = authors_walk(graph, search, concept=concept.concept, most_rows=left)
        excluded = np.isin(ways.nodes, _nodes_of(graph, concept.exclude.items))
        tables.append(_authors_table(graph, concept.concept, ways.only(~excluded)))
        left -= tables[-1].height
    rows = pl.concat(tables)
    write_table(out, AUTHORS_ROWS, rows)
    return rows.height


def _unexpected(graph: Graph, concept: Concept, search: Search, reached: Reached) -> dict[str, str]:
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


def _scope(graph: Graph, concept: Concept, reached: Reached, facts: Facts, successors: Mapping[int, int]) -> Scoped:
    """Leave out the items that the config excludes and what states none of the concept's countries."""
    excluded = np.isin(reached.nodes, _nodes_of(graph, concept.exclude.items))
    countries = _country_lists(facts, graph.nodes[reached.nodes], concept, successors)
    inside = _in_scope(concept, countries["country_qids"]) & ~excluded
    drops = countries.select(
        key=qid_of("number"),
        concept=pl.lit(concept.concept),
        stage=pl.lit("extract"),
        reason=pl.when(pl.Series(excluded)).then(pl.lit("excluded item")).otherwise(pl.lit("country out of scope")),
        detail=pl.col("country_qids").list.join(" "),
    )
    return Scoped(reached.only(inside), countries.filter(pl.Series(inside)), drops.filter(pl.Series(~inside)))


def _authors_table(graph: Graph, concept: str, ways: Ways) -> pl.DataFrame:
    """Write out every way of a concept; those that end alike are numbered."""
    ones, copies = ways.one_by_one()
    numbers = {"root": ones.roots, "parent": ones.parents, "qid": ones.nodes}
    rows = pl.DataFrame({name: graph.nodes[nodes] for name, nodes in numbers.items()}).with_columns(
        pl.Series("hop", ones.hops), pl.Series("copy", copies), concept=pl.lit(concept)
    )
    return rows.with_columns(qid_of(name).alias(name) for name in numbers).select(list(AUTHORS_ROWS.columns))


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


def _search_of(graph: Graph, concept: Concept, *, semantics: Semantics = "default") -> Search:
    """Say in nodes and masks what a concept looks for."""
    limits = {node: hops for number, hops in concept.limits.items() if (node := graph.find(number)) is not None}
    missing = [root.qid for root in concept.roots if graph.find(int(root.qid[1:])) is None]
    _say_missing(concept, missing, any_there=bool(limits))
    return Search(
        roots=tuple(sorted(limits)),
        hops=tuple(limits[node] for node in sorted(limits)),
        edge_mask=concept.edge_mask,
        country_mask=concept.country_mask,
        blocked=tuple(_nodes_of(graph, concept.exclude.classes)),
        expand_artifacts=concept.expand_artifacts,
        literal=semantics == "authors",
    )


def _say_missing(concept: Concept, missing: Sequence[str], *, any_there: bool) -> None:
    """Warn of roots that the graph never mentions; without any root there is nothing to do."""
    if not any_there:
        raise UsageError(
            f"the graph mentions no root of {concept.concept}",
            found=" ".join(missing),
            hint="Check the QIDs, or ingest the dump that describes them.",
        )
    for qid in missing:
        logger.warning("the graph never mentions the root %s of %s", qid, concept.concept)


def _nodes_of(graph: Graph, qids: Sequence[str]) -> list[int]:
    """Find the nodes of QIDs, ascending; what the graph does not have is left out."""
    nodes = (graph.find(int(qid[1:])) for qid in qids)
    return sorted({node for node in nodes if node is not None})


def _country_lists(
    facts: Facts, numbers: NDArray[np.uint32], concept: Concept, successors: Mapping[int, int]
) -> pl.DataFrame:
    """List the countries of items, in the order of their numbers: number, country_qids; each country once.

    The properties come in the order of the concept; within one, countries come in the order that the item has. With
    the choice `P495-first`, P17 counts only where P495 says nothing.
    """
    parts = [
        _lists_of(facts, numbers[begin : begin + _ITEMS_AT_ONCE], concept, successors)
        for begin in range(0, max(len(numbers), 1), _ITEMS_AT_ONCE)
    ]
    return pl.concat(parts)


def _lists_of(
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


def _in_scope(concept: Concept, country_qids: pl.Series) -> NDArray[np.bool_]:
    """Tell which lists have one of the concept's countries."""
    if concept.countries == "all":
        return np.ones(len(country_qids), np.bool_)
    wanted = sorted({qid for iso in concept.countries for qid in country(iso).qids})
    inside = country_qids.list.eval(pl.element().is_in(wanted)).list.any().fill_null(value=False)
    return inside.to_numpy()
