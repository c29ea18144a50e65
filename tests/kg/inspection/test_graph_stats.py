"""The numbers of a graph, held against counting by hand and cycles found by networkx."""

from collections import Counter, defaultdict
from pathlib import Path

import networkx
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.core.schemas import CANDIDATES, DIFF
from culturekit.core.tables import read_table, write_table
from culturekit.kg.inspection.graph_stats import compare, diff_graphs, diff_totals, graph_stats, stats_lines
from tests.effort import examples
from tests.kg.worlds import Said, make_graph, worlds

statements = worlds(["P31", "P279", "P279", "P17", "P361"], st.integers(-1, 12), items=range(1, 10))


@settings(max_examples=50, deadline=None)
@given(world=statements)
def test_the_numbers_are_those_of_counting_by_hand(world: list[Said], tmp_path_factory: pytest.TempPathFactory) -> None:
    stats = graph_stats(make_graph(tmp_path_factory.mktemp("world") / "w", world, items=range(1, 10)))
    assert stats.items == 9
    assert stats.statements == len(world)
    assert stats.dangling_targets == len({s.value for s in world if s.value > 9})
    assert {each["property"] for each in stats.properties} == {s.name for s in world}
    for each in stats.properties:
        own = [s for s in world if s.name == each["property"]]
        ranks = Counter(s.rank for s in own)
        assert all(each[rank] == ranks[rank] for rank in ("preferred", "normal", "deprecated"))
        assert (each["novalue"], each["somevalue"]) == (sum(s.value == 0 for s in own), sum(s.value == -1 for s in own))
        assert each["qualified"] == each["ended"] == sum(s.ended for s in own)
        assert each["dangling"] == sum(s.value > 9 for s in own)
    edges = {(s.number, s.value) for s in world if s.value > 0 and s.name in {"P31", "P279"}}
    assert stats.edges == len(edges)
    children, parents = Counter(parent for _, parent in edges), Counter(child for child, _ in edges)
    assert [e["degree"] for e in stats.most_children] == sorted(children.values(), reverse=True)[:10]
    assert [e["degree"] for e in stats.most_parents] == sorted(parents.values(), reverse=True)[:10]
    classes = networkx.DiGraph((s.number, s.value) for s in world if s.counts and s.name == "P279")
    large = [each for each in networkx.strongly_connected_components(classes) if len(each) > 1]
    assert stats.cycles["components"] == len(large)
    assert stats.cycles["classes"] == sum(map(len, large))
    assert stats.cycles["self_loops"] == networkx.number_of_selfloops(classes)
    assert sorted(cycle["classes"] for cycle in stats.cycles["largest"]) == sorted(map(len, large))
    assert list(stats_lines(stats))


def test_labels_are_counted_by_language_with_the_share_of_mul(tmp_path: Path) -> None:
    labels = {1: {"en": "one"}, 2: {"mul": "two"}, 3: {"de": "drei"}, 4: {"fr": "quatre"}}
    stats = graph_stats(make_graph(tmp_path / "w", [], items=[1, 2, 3, 4], labels=labels))
    assert {each["language"]: each["items"] for each in stats.languages} == {"en": 1, "mul": 1, "de": 1, None: 1}
    assert stats.mul_share == 0.25
    assert "labels that fall back to mul: 25.0%" in list(stats_lines(stats))


# Comparisons held against comparing sets in plain Python.


world = worlds(["P31", "P279", "P17", "P361"], st.integers(-1, 4), items=range(1, 6), most=14)
PARTS = {"P31": "edge", "P279": "edge", "P17": "country", "P361": "statement"}


def manners(said: list[Said]) -> dict[tuple[str, str, str], str]:
    found = defaultdict(list)
    for s in said:
        value = {0: "novalue", -1: "somevalue"}.get(s.value, f"Q{s.value}")
        found[f"Q{s.number}", s.name, value].append(f"{s.rank}{', qualified, ended' if s.ended else ''}")
    return {key: "; ".join(sorted(manner)) for key, manner in found.items()}


@settings(max_examples=examples(60), deadline=None)
@given(a=world, b=world, width=st.sampled_from([1, 2, 100]))
def test_graphs_differ_as_their_statements_do(
    a: list[Said], b: list[Said], width: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("worlds")
    before = make_graph(folder / "a", a, items=[1], labels={2: {"en": "old"}})
    after = make_graph(folder / "b", b, items=[1], labels={2: {"mul": "new"}, 1: {"fr": "un"}})
    rows = diff_graphs(before, after, width=width)
    assert DIFF.problems(rows) == []
    x, y = manners(a), manners(b)
    expected = {
        (
            PARTS[key[1]], *key, "added" if key not in x else "removed" if key not in y else "changed", x.get(key),
            y.get(key),
        )
        for key in x.keys() | y.keys()
        if x.get(key) != y.get(key)
    }  # fmt: skip
    columns = ("part", "qid", "property", "value", "change", "before", "after")
    own = rows.filter(pl.col("part").is_in(["edge", "country", "statement"])).select(columns)
    assert set(own.iter_rows()) == expected
    items = rows.filter(pl.col("part") == "item").select("qid", "change")
    here, there = {1, *(s.number for s in a)}, {1, *(s.number for s in b)}
    assert set(items.iter_rows()) == {(f"Q{n}", "added") for n in there - here} | {
        (f"Q{n}", "removed") for n in here - there
    }
    labels = set(rows.filter(pl.col("part") == "label").select("qid", "before", "after").iter_rows())
    both = {("Q2", "old (en)", "new (mul)")} if 2 in here & there else set()
    assert labels == {("Q1", "item 1 (en)", None)} | both


@pytest.fixture
def candidates(small_run: Path) -> pl.DataFrame:
    return read_table(small_run / "candidates/candidates.parquet", CANDIDATES)


def test_candidates_differ_by_row_country_label_root_hop_and_path(tmp_path: Path, candidates: pl.DataFrame) -> None:
    first = pl.arange(candidates.height, eager=True) == 0
    changed = candidates.with_columns(
        label=pl.when(first).then(pl.lit("another name")).otherwise("label"),
        hop=pl.when(first).then(pl.col("hop") + 1).otherwise("hop"),
        country_qids=pl.when(first).then(pl.lit(["Q155", "Q9999"])).otherwise("country_qids"),
        path=pl.when(first).then(pl.concat_list(pl.col("path"), pl.lit("Q1"))).otherwise("path"),
        roots=pl.when(first).then(pl.concat_list(pl.col("roots"), pl.lit("Q1"))).otherwise("roots"),
        sitelinks=pl.when(first).then(7).otherwise("sitelinks").cast(pl.UInt16),
    ).slice(0, candidates.height - 1)
    for name, rows in (("a", candidates), ("b", changed)):
        (tmp_path / name).mkdir()
        write_table(tmp_path / name, CANDIDATES, rows)
    rows = compare(tmp_path / "a", tmp_path / "b/candidates.parquet")
    assert DIFF.problems(rows) == []
    old = candidates.row(0, named=True)
    countries = {("removed", q) for q in old["country_qids"] if q != "Q155"} | {("added", "Q9999")}
    countries |= set() if "Q155" in old["country_qids"] else {("added", "Q155")}
    assert set(rows.filter(pl.col("part") == "country").select("change", "value").iter_rows()) == countries
    totals = diff_totals(rows)
    assert {name: count for name, count in totals.items() if not name.startswith(("country", "field"))} == {
        "candidate removed": 1, "hop changed": 1, "label changed": 1, "path changed": 1, "root added": 1,
    }  # fmt: skip
    (label,) = rows.filter(pl.col("part") == "label").iter_rows(named=True)
    assert (label["qid"], label["before"], label["after"]) == (old["qid"], old["label"], "another name")
    back = diff_totals(compare(tmp_path / "b", tmp_path / "a"))
    assert (back["candidate added"], back["root removed"]) == (1, 1)


def test_the_same_differs_in_nothing_and_different_kinds_are_refused(small_run: Path, tmp_path: Path) -> None:
    assert compare(small_run / "graph", small_run / "graph").height == 0
    assert compare(small_run / "candidates", small_run / "candidates").height == 0
    with pytest.raises(UsageError, match="different kinds"):
        compare(small_run / "graph", small_run / "candidates")
    with pytest.raises(UsageError, match="a folder that is neither"):
        compare(small_run / "graph", tmp_path)
    with pytest.raises(UsageError, match="found nothing"):
        compare(tmp_path / "nowhere", small_run / "graph")
