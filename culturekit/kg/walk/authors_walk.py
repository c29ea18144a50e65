"""Algorithm 1 as the published code walks it: no node is remembered, so there is a row for every way to an artifact.

A way is a root and the edges followed from it. A node that two parents reach is walked from twice, a cycle is walked
round until the hops are used up, and an artifact comes once for every way, root by root. Ways from the same root to the
same node in the same number of hops only differ in how many there are: they are walked together and counted, which
gives the same rows in a fraction of the time.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.kg.edge_sweep import edge_blocks, let_go
from culturekit.kg.store import Graph
from culturekit.kg.walk.searches import Search

__all__ = ["MOST_ROWS", "Ways", "authors_walk"]

MOST_ROWS = 10_000_000
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


def authors_walk(graph: Graph, search: Search, *, concept: str, most_rows: int = MOST_ROWS) -> Ways:
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
                raise too_many(concept, hop, total, most_rows)
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


def too_many(concept: str, hop: int, rows: float, most_rows: int) -> UsageError:
    """Say that the rows of all ways are more than anybody wants to write."""
    return UsageError(
        f"too many ways to the artifacts of {concept}: the authors' semantics writes a row for each",
        expected=f"at most {most_rows:,} rows",
        found=f"{rows:,.0f} or more by hop {hop}",
        hint="Take fewer hops or roots, or allow more rows with --max-rows.",
    )
