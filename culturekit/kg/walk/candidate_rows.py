"""What a walk reached, and candidate rows: where an artifact was found, and what the dump says about it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.kg.concepts import Concept
from culturekit.kg.dump.entities import ENTITY_STATEMENTS
from culturekit.kg.facts import Facts, qid_of
from culturekit.kg.store import Graph
from culturekit.kg.walk.searches import Search
from culturekit.kg.walk.walk import Walk
from culturekit.records.schemas import CANDIDATES

__all__ = ["Reached", "candidate_rows", "evidence", "reached_by"]

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
