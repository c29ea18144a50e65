"""Algorithm 1 held against a walk that anybody can check by reading it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.schemas import AUTHORS_ROWS, CANDIDATES, DROPS
from culturekit.core.tables import read_table
from culturekit.kg import store
from culturekit.kg.concepts import Concept, Exclusions, Root
from culturekit.kg.extract import ExtractOptions, extract
from tests.effort import examples
from tests.kg.worlds import ITEMS, Naive, Said, World, loops, make_graph, work_in, worlds

tangled = worlds(["P31", "P279", "P279", "P495", "P17"], st.integers(-1, 10)).map(
    lambda world: [*world, Said(1, "P279", 9), Said(9, "P279", 9)]
)

concepts = st.builds(
    lambda roots, own, **rules: Concept(
        concept="any",
        roots=tuple(Root(qid=f"Q{n}", label="", hops=own if n % 2 else None) for n in (9, *roots)),
        **rules,
    ),
    st.lists(st.integers(1, 10), max_size=3),
    st.integers(1, 3),
    hops=st.integers(1, 5),
    follow=st.sampled_from([("P31", "P279"), ("P279",), ("P31",)]),
    country_properties=st.sampled_from([("P495", "P17"), ("P17", "P495"), ("P17",)]),
    exclude=st.builds(
        Exclusions,
        classes=st.lists(st.sampled_from(["Q3", "Q4", "Q9", "Q77"]), max_size=1).map(tuple),
        items=st.lists(st.sampled_from(["Q5", "Q6", "Q77"]), max_size=1).map(tuple),
    ),
    ranks=st.sampled_from(["not-deprecated", "truthy", "all"]),
    ended=st.sampled_from(["keep", "drop"]),
    country_choice=st.sampled_from(["union", "P495-first"]),
    expand_artifacts=st.booleans(),
)

several = st.lists(concepts, min_size=1, max_size=3).map(
    lambda found: [concept.model_copy(update={"concept": f"c{place}"}) for place, concept in enumerate(found)]
)


def check_rows(out: Path, walks: Mapping[str, Naive]) -> None:
    """Hold every candidate and drop against the naive walks."""
    expected, dropped = [], []
    for name, walk in walks.items():
        excluded = {int(qid[1:]) for qid in walk.concept.exclude.items}
        for number, (hop, roots, path) in sorted(walk.candidates().items()):
            if number in excluded:
                dropped.append((name, f"Q{number}", "excluded item"))
                continue
            lists = [f"Q{root}" for root in sorted(roots)], [f"Q{node}" for node in path]
            countries, valueless = walk.countries(number), sorted(walk.valueless(number))
            expected.append((name, f"Q{number}", hop, *lists, countries, valueless))
    rows = read_table(out / "candidates.parquet", CANDIDATES).with_columns(pl.col("valueless").list.sort())
    assert rows.select("concept", "qid", "hop", "roots", "path", "country_qids", "valueless").rows() == expected
    drops = read_table(out / "drops.parquet", DROPS).select("concept", "key", "reason").rows()
    assert sorted(drops) == sorted(dropped)


@settings(max_examples=examples(200), deadline=None)
@given(world=tangled, found=several, block=st.sampled_from([1, 2, 5, 1 << 19]), replaced=st.booleans())
def test_the_walk_finds_what_a_naive_walk_finds(
    world: World, found: Sequence[Concept], block: int, replaced: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("world")
    graph, work = make_graph(folder, world, ITEMS), work_in(folder / "out")
    successors = {2: 7, 3: 10} if replaced else {}
    with pytest.MonkeyPatch.context() as patch:
        for size in ("_EDGES_AT_ONCE", "_EDGES_KEPT", "_NODES_KEPT"):
            patch.setattr(store, size, block)
        outcome = extract(work, graph, found, successors=successors)
    walks = {concept.concept: Naive(world, concept, successors) for concept in found}
    check_rows(work.out, walks)
    assert outcome.notes["ground"] == loops(list(walks.values()))


@settings(max_examples=examples(150), deadline=None)
@given(world=tangled, found=several)
def test_authors_semantics_has_a_row_for_every_way(
    world: World, found: Sequence[Concept], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("world")
    graph, work = make_graph(folder, world, ITEMS), work_in(folder / "out")
    extract(work, graph, found, ExtractOptions("authors"))
    expected = Counter(
        (concept.concept, f"Q{root}", hop, f"Q{parent}", f"Q{number}")
        for concept in found
        for root, hop, parent, number in Naive(world, concept).ways().elements()
        if f"Q{number}" not in concept.exclude.items
    )
    rows = read_table(work.out / "authors_rows.parquet", AUTHORS_ROWS)
    assert Counter(rows.select("concept", "root", "hop", "parent", "qid").rows()) == expected
    candidates = read_table(work.out / "candidates.parquet", CANDIDATES)
    assert set(candidates.select("concept", "qid").rows()) == {(name, qid) for name, _, _, _, qid in expected}
    for row in candidates.iter_rows(named=True):
        ways = [way for way in expected if (way[0], way[4]) == (row["concept"], row["qid"])]
        assert row["hop"] == min(way[2] for way in ways) == len(row["path"]) - 1
        assert set(row["roots"]) == {way[1] for way in ways}


def test_more_roots_than_bits_take_several_passes(tmp_path: Path) -> None:
    world = [Said(n, "P279", n % 7 + 1) for n in ITEMS] + [
        Said(3, "P17", 10),
        Said(n := 8, "P495", 10),
        Said(n, "P31", 5),
    ]
    one = Concept(concept="c00", hops=4, roots=tuple(Root(qid=f"Q{n}", label="") for n in range(1, 8)))
    many = [one.model_copy(update={"concept": f"c{place:02}", "hops": place % 4 + 1}) for place in range(21)]
    work = work_in(tmp_path / "out")
    outcome = extract(work, make_graph(tmp_path, world, ITEMS), many)
    walks = {concept.concept: Naive(world, concept) for concept in many}
    check_rows(work.out, walks)
    assert outcome.notes["ground"] == loops(list(walks.values()))
