"""Algorithm 1 held against a walk that anybody can check by reading it."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.kg.concepts import Concept, Exclusions, Root
from culturekit.kg.extract import extract
from culturekit.kg.ingest import IngestOptions, ingest
from culturekit.records.work import Work
from tests.conftest import HeardProgress, HereEngine

RANKS = ("preferred", "normal", "deprecated")
Statement = tuple[str, str, int, str]
"""Item, property, value (0 for novalue), rank."""

statements = st.lists(
    st.tuples(
        st.integers(1, 8).map(lambda n: f"Q{n}"),
        st.sampled_from(["P31", "P279", "P495", "P17"]),
        st.integers(0, 9),
        st.sampled_from(RANKS),
    ),
    max_size=30,
)


def dump_of(world: list[Statement], path: Path) -> Path:
    """Write a world as a dump; Q9 is only ever mentioned."""
    lines = []
    for number in range(1, 9):
        claims: dict[str, list[object]] = {}
        for qid, name, value, rank in world:
            if qid != f"Q{number}":
                continue
            snak: dict[str, object] = {"snaktype": "novalue", "property": name}
            if value:
                snak = {"snaktype": "value", "property": name, "datavalue": {"value": {"id": f"Q{value}"}}}
            claims.setdefault(name, []).append({"mainsnak": snak, "rank": rank})
        label = {"en": {"language": "en", "value": f"item {number}"}}
        lines.append(json.dumps({"id": f"Q{number}", "type": "item", "labels": label, "claims": claims or []}))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def naive(world: list[Statement], concept: Concept) -> dict[str, tuple[int, set[str], tuple[int, ...]]]:
    """Walk in plain Python: artifact to (smallest hop, all roots, smallest shortest path)."""
    good = [(q, name, v) for q, name, v, rank in world if v and rank != "deprecated"]
    has_country = {q for q, name, _ in good if name in concept.country_properties}
    roots = {root.qid for root in concept.roots}
    found: dict[str, tuple[int, set[str], tuple[int, ...]]] = {}
    for root in concept.roots:
        seen = {root.qid, *concept.exclude.classes}
        frontier: dict[str, tuple[int, ...]] = {root.qid: (int(root.qid[1:]),)}
        for hop in range(1, concept.hops_of(root) + 1):
            fresh: dict[str, tuple[int, ...]] = {}
            for parent, path in frontier.items():
                for child, name, value in good:
                    if f"Q{value}" == parent and name in concept.follow and child not in seen:
                        longer = (*path, int(child[1:]))
                        fresh[child] = min(fresh.get(child, longer), longer)
            seen |= set(fresh)
            frontier = {}
            for child, path in fresh.items():
                if child in has_country and child not in roots:
                    old = found.get(child, (99, set(), path))
                    best = min((old[0], old[2]), (hop, path))
                    found[child] = (best[0], old[1] | {root.qid}, best[1])
                else:
                    frontier[child] = path
    return {qid: row for qid, row in found.items() if qid not in concept.exclude.items}


concepts = st.builds(
    lambda roots, hops, own, follow, classes, items: Concept(
        concept="any",
        hops=hops,
        roots=tuple(Root(qid=f"Q{n}", label="", hops=own if n % 2 else None) for n in roots),
        follow=follow,
        exclude=Exclusions(classes=classes, items=items),
    ),
    st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True),
    st.integers(1, 5),
    st.integers(1, 3),
    st.sampled_from([("P31", "P279"), ("P279",), ("P31",)]),
    st.lists(st.sampled_from(["Q3", "Q4"]), max_size=1).map(tuple),
    st.lists(st.sampled_from(["Q5", "Q6"]), max_size=1).map(tuple),
)


@settings(max_examples=150, deadline=None)
@given(world=statements, concept=concepts)
def test_the_walk_finds_what_a_naive_walk_finds(
    world: list[Statement], concept: Concept, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("world")
    world = [*world, ("Q1", "P279", 9, "normal"), *((f"Q{n}", "P279", n, "normal") for n in range(1, 9))]
    graph = Work({}, folder / "graph", folder / "scratch", HereEngine(), HeardProgress())
    out = Work({}, folder / "out", folder / "scratch", HereEngine(), HeardProgress())
    for place in (graph.out, graph.scratch, out.out):
        place.mkdir()
    ingest(graph, [dump_of(world, folder / "dump.json")], IngestOptions())
    extract(out, graph.out, [concept])
    rows = pl.read_parquet(out.out / "candidates.parquet").iter_rows(named=True)
    ours = {row["qid"]: (row["hop"], set(row["roots"]), tuple(int(q[1:]) for q in row["path"])) for row in rows}
    assert ours == naive(world, concept)
