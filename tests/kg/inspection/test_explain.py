"""Explanations, previews, numbers and comparisons of graphs against naive walks and counting by hand."""

import gzip
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import networkx
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.core.schemas import CANDIDATES, DIFF
from culturekit.core.tables import read_table, write_table
from culturekit.kg.concepts import Concept, Exclusions, load_concept, with_hops
from culturekit.kg.inspection.explain import Explanation, explain, explain_lines
from culturekit.kg.inspection.graph_stats import compare, diff_graphs, diff_totals, graph_stats, stats_lines
from culturekit.kg.inspection.preview import Preview, PreviewOptions, preview, preview_lines
from tests.effort import examples
from tests.kg.worlds import Naive, Said, concept_of, make_graph, worlds

BRAZIL, FRANCE = 155, 142


def naive_paths(world: list[Said], concept: Concept, item: int) -> set[tuple[int, ...]]:
    """Try every way down from every root, by the rules of Algorithm 1, with no item twice."""
    good = [s for s in world if s.counts]
    has_country = {s.number for s in good if s.name in concept.country_properties}
    roots = {int(root.qid[1:]) for root in concept.roots}
    excluded = {int(qid[1:]) for qid in concept.exclude.classes}
    found = set()

    def down(path: tuple[int, ...], limit: int) -> None:
        if path[-1] == item and len(path) > 1:
            found.add(path)
            return
        if len(path) > 1 and path[-1] in has_country - roots:
            return
        if len(path) <= limit:
            for s in good:
                fresh = s.number not in path and s.number not in excluded
                if s.name in concept.follow and s.value == path[-1] and fresh:
                    down((*path, s.number), limit)

    for root in concept.roots:
        down((int(root.qid[1:]),), concept.hops_of(root))
    return found


statements = worlds(["P31", "P279", "P495", "P17"], st.integers(-1, 9), ended=False, most=26)
concepts = st.builds(
    lambda roots, hops, own, classes, items, follow, by: concept_of(
        {n: own if n % 2 else None for n in roots}, hops=hops, classes=classes, items=items
    ).model_copy(update={"follow": follow, "country_properties": by}),
    st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True),
    st.integers(1, 5),
    st.integers(1, 3),
    st.lists(st.integers(3, 5), max_size=2, unique=True),
    st.lists(st.integers(5, 6), max_size=1),
    st.sampled_from([("P31", "P279"), ("P279",)]),
    st.sampled_from([("P495", "P17"), ("P17",)]),
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(world=statements, concept=concepts)
def test_verdicts_hops_and_paths_are_those_of_a_naive_search(
    world: list[Said], concept: Concept, tmp_path_factory: pytest.TempPathFactory
) -> None:
    graph = make_graph(tmp_path_factory.mktemp("world") / "w", world, items=range(1, 9))
    roots = {int(root.qid[1:]) for root in concept.roots}
    excluded = {int(qid[1:]) for qid in concept.exclude.items}
    for item in (1, 4, 5, 8):
        paths = naive_paths(world, concept, item)
        told = explain(graph, f"Q{item}", concept, show=10_000)
        ours = {tuple(int(step.qid[1:]) for step in path.steps) for path in told.paths if path.open}
        assert ours == paths
        assert told.open_paths == len(paths)
        assert told.cut_paths == sum(not path.open for path in told.paths)
        hops = {root: min(len(p) - 1 for p in paths if p[0] == root) for root in {p[0] for p in paths}}
        assert {int(root.qid[1:]): root.hop for root in told.roots} == hops
        country = any(s.counts and s.number == item and s.name in concept.country_properties for s in world)
        expected = bool(paths) and country and item not in roots and item not in excluded
        assert (told.verdict == "in") == expected
        assert [path.hop for path in told.paths if path.open] == sorted(len(path) - 1 for path in paths)
        assert list(explain_lines(told))


def codes(told: Explanation) -> set[str]:
    return {reason.code for reason in told.reasons}


CHAIN = [Said(2, "P279", 1), Said(3, "P279", 2), Said(4, "P31", 3), Said(4, "P495", BRAZIL)]


@pytest.mark.parametrize(
    ("world", "concept", "expected"),
    [
        (CHAIN, concept_of({1: None}), {"artifact"}),
        (CHAIN, concept_of({1: None}, hops=2), {"beyond-the-limit"}),
        (CHAIN, concept_of({1: None}, classes=[2]), {"cut-by-exclusion"}),
        (CHAIN, concept_of({1: None}, hops=2, classes=[2]), {"beyond-the-limit"}),
        (CHAIN, concept_of({1: None}, items=[4]), {"excluded-item"}),
        (CHAIN, concept_of({1: None, 4: None}), {"is-a-root"}),
        (CHAIN, concept_of({9: None}), {"no-path"}),
        (CHAIN, concept_of({1: None}, countries=["FR"]), {"country-out-of-scope"}),
        ([*CHAIN, Said(3, "P17", FRANCE)], concept_of({1: None}), {"below-an-artifact"}),
        ([*CHAIN[:2], Said(4, "P31", 3, "deprecated"), CHAIN[3]], concept_of({1: None}), {"statement-does-not-count"}),
        (CHAIN[:3], concept_of({1: None}), {"no-country"}),
        ([*CHAIN[:3], Said(4, "P17", BRAZIL, "deprecated")], concept_of({1: None}), {"country-deprecated"}),
        ([*CHAIN[:3], Said(4, "P17", 0), Said(4, "P495", -1)], concept_of({1: None}), {"country-without-value"}),
        ([Said(4, "P31", -1), CHAIN[3]], concept_of({1: None}), {"no-path"}),
    ],
)
def test_every_reason_is_told_by_itself(
    tmp_path: Path, world: list[Said], concept: Concept, expected: set[str]
) -> None:
    told = explain(make_graph(tmp_path / "w", world, items=[1]), "Q4", concept)
    assert codes(told) == expected
    assert told.verdict == ("in" if expected == {"artifact"} else "out")


def test_an_item_that_is_only_mentioned_or_unknown_is_said_to_be_so(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", CHAIN)
    assert "only-mentioned" in codes(explain(graph, "Q155", concept_of({1: None})))
    assert "not-in-the-dump" in codes(explain(graph, "Q77", concept_of({1: None})))
    with pytest.raises(UsageError, match="a QID such as Q42"):
        explain(graph, "P31", concept_of({1: None}))
    with pytest.raises(UsageError, match="a QID such as Q42"):
        explain(graph, "Q99999999999", concept_of({1: None}))
    with pytest.raises(UsageError, match="not a graph store"):
        explain(tmp_path, "Q4", concept_of({1: None}))


def test_the_cut_names_the_class_and_the_path_and_steps_their_line_of_the_dump(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", CHAIN, items=[1])
    told = explain(graph, "Q4", concept_of({1: None}, classes=[2]))
    assert told.reasons[0].text == "Q2 (item 2) cuts Q1 > Q2 > Q3 > Q4: excluded class"
    assert [step.cut for step in told.paths[0].steps] == [None, "excluded class", None, None]
    assert (told.open_paths, told.cut_paths) == (0, 1)
    told = explain(graph, "Q4", concept_of({1: None}, hops=1))
    assert "the nearest root, Q1 (item 1), needs 3 hops" in told.reasons[0].text
    lines = (tmp_path / "w/dump.json").read_bytes().split(b"\n")
    told = explain(graph, "Q4", concept_of({1: None}))
    assert len(told.paths[0].steps) > 1
    for step in told.paths[0].steps:
        assert step.place is not None
        assert f'"id": "{step.qid}"'.encode() in lines[step.place.line - 1]


def test_ended_statements_count_unless_dropped_and_truthy_hears_only_the_best(tmp_path: Path) -> None:
    world = [Said(4, "P31", 1, ended=True), Said(4, "P17", BRAZIL), Said(4, "P17", FRANCE, "preferred")]
    graph = make_graph(tmp_path / "w", world, items=[1])
    concept = concept_of({1: None}, countries=["BR"])
    assert explain(graph, "Q4", concept).verdict == "in"
    assert codes(explain(graph, "Q4", concept.model_copy(update={"ended": "drop"}))) == {"statement-does-not-count"}
    assert codes(explain(graph, "Q4", concept.model_copy(update={"ranks": "truthy"}))) == {"country-out-of-scope"}


def test_more_paths_than_are_shown_are_counted_and_more_than_can_be_counted_are_said(tmp_path: Path) -> None:
    layers = [range(10, 20), range(20, 30), range(30, 40), range(40, 50), range(50, 60)]
    world = [Said(n, "P279", 1) for n in layers[0]]
    for above, below in pairwise(layers):
        world += [Said(child, "P279", parent) for child in below for parent in above]
    world += [Said(99, "P31", parent) for parent in layers[-1]] + [Said(99, "P17", BRAZIL)]
    world += [Said(98, "P31", parent) for parent in layers[1]] + [Said(98, "P17", BRAZIL)]
    graph = make_graph(tmp_path / "w", world, items=[1])
    few = explain(graph, "Q98", concept_of({1: None}, hops=6), show=5)
    assert (few.open_paths, few.more_open_paths, len(few.paths)) == (100, False, 5)
    many = explain(graph, "Q99", concept_of({1: None}, hops=6), show=5)
    assert (many.open_paths, many.more_open_paths, len(many.paths)) == (10_000, True, 5)
    assert "at least 10,000 open" in "\n".join(explain_lines(many))


def test_a_path_of_the_shipped_sample_is_found(small_run: Path) -> None:
    told = explain(small_run / "graph", "Q2065278", load_concept("cuisine"))
    assert told.verdict == "in"
    assert [(root.qid, root.hop) for root in told.roots] == [("Q746549", 1), ("Q2095", 2)]
    assert told.place is not None
    assert told.place.file == "wikidata-sample.json.gz"


preview_worlds = worlds(
    ["P31", "P279", "P279", "P495", "P17"], st.one_of(st.integers(-1, 9), st.sampled_from([BRAZIL, FRANCE])),
    items=range(1, 10), ended=False, least=5,
)  # fmt: skip


@settings(max_examples=examples(50), deadline=None)
@given(
    world=preview_worlds, roots=st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True), scoped=st.booleans()
)
def test_counts_are_those_of_a_naive_walk(
    world: list[Said], roots: list[int], scoped: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    graph = make_graph(tmp_path_factory.mktemp("world") / "w", world, items=range(1, 10))
    concept = concept_of(
        dict.fromkeys(roots), hops=4, classes=[3], items=[6], countries=["BR", "FR"] if scoped else None
    )
    found = preview(graph, concept, wording="words", options=PreviewOptions(samples=100))
    wanted = {BRAZIL: "BR", FRANCE: "FR"}
    everything: set[int] = set()
    inside: set[int] = set()
    for root in found.roots:
        below = Naive(world, concept).from_root(int(root.qid[1:]), 4)
        for hop in root.hops:
            artifacts = sorted(n for n, path in below.items() if len(path) == hop.hop + 1 and n != 6)
            expected: dict[str, list[int]] = {}
            for number in artifacts:
                said = (s for s in world if s.counts and s.number == number and s.name in {"P495", "P17"})
                stated = {s.value for s in said}
                keys = {wanted.get(v, f"Q{v}") for v in stated if not scoped or v in wanted} or {"out of scope"}
                inside |= {number} if keys != {"out of scope"} else set()
                for key in keys:
                    expected.setdefault(key, []).append(number)
            everything |= set(artifacts)
            assert hop.artifacts == len(artifacts)
            assert {c.country: [int(q[1:]) for q, _ in c.sample] for c in hop.cells} == expected
            assert all(cell.count == len(cell.sample) for cell in hop.cells)
    assert (found.candidates, found.candidates + found.out_of_scope) == (len(inside), len(everything))
    assert found.cost.requests == len(inside)


def explosive(size: int) -> list[Said]:
    """Hop 2 brings one artifact, hop 3 many: all but two by way of class 3."""
    world = [Said(2, "P279", 1), Said(3, "P279", 2), Said(4, "P279", 2), Said(5, "P31", 2), Said(5, "P17", BRAZIL)]
    for number in range(100, 100 + size):
        world += [Said(number, "P31", 4 if number < 102 else 3), Said(number, "P17", FRANCE)]
    return world


def test_an_explosion_names_the_classes_most_of_it_comes_through(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", explosive(20), items=[1])
    options = PreviewOptions(samples=3, factor=5, least=10)
    found = preview(graph, concept_of({1: None}), wording="", options=options)
    (explosion,) = found.roots[0].explosions
    assert (explosion.hop, explosion.before, explosion.artifacts) == (3, 1, 20)
    assert [(share.qid, share.artifacts) for share in explosion.by] == [("Q2", 20), ("Q3", 18)]
    assert "EXPLODES at hop 3: from 1 to 21 artifacts, through Q2 (item 2) 100% > Q3 (item 3) 90%" in "\n".join(
        preview_lines(found)
    )
    for calmer in (PreviewOptions(factor=21, least=10), PreviewOptions(factor=5, least=21)):
        assert preview(graph, concept_of({1: None}), wording="", options=calmer).roots[0].explosions == ()


def test_samples_follow_the_seed_and_nothing_else(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", explosive(60), items=[1])

    def drawn(concept: Concept, seed: int) -> object:
        found = preview(graph, concept, wording="", options=PreviewOptions(samples=5, seed=seed))
        return found.roots[0].hops[-1].cells[-1].sample

    assert drawn(concept_of({1: None}), 0) == drawn(concept_of({1: None, 2: None}), 0)
    assert drawn(concept_of({1: None}), 0) != drawn(concept_of({1: None}), 1)


def test_the_cost_is_tokens_from_the_wording_and_labels_and_money_only_at_given_prices(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", explosive(8), items=[1])
    plain = preview(graph, concept_of({1: None}), wording="").cost
    worded = preview(graph, concept_of({1: None}), wording="w" * 400).cost
    assert (plain.requests, plain.price) == (9, None)
    assert worded.input_tokens - plain.input_tokens == pytest.approx(100 * 9, abs=1)
    priced = preview(graph, concept_of({1: None}), wording="", prices=(2.0, 8.0)).cost
    assert priced.price == pytest.approx((2 * priced.input_tokens + 8 * priced.output_tokens) / 1e6)
    longer = make_graph(tmp_path / "v", explosive(8), items=[1], labels={107: {"en": "x" * 4007}})
    grown = preview(longer, concept_of({1: None}), wording="").cost
    assert grown.input_tokens - plain.input_tokens == pytest.approx(1000, abs=1)


def test_a_root_that_the_graph_lacks_is_said(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", explosive(3), items=[1])
    found = preview(graph, concept_of({1: None, 77: None}), wording="")
    assert [root.found for root in found.roots] == [True, False]
    assert "Q77: the graph never mentions it" in "\n".join(preview_lines(found))
    with pytest.raises(UsageError, match="mentions no root"):
        preview(graph, concept_of({77: None}), wording="")


@pytest.fixture(scope="module")
def real_graph(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real class hierarchy as a graph, with the countries that its items state."""
    said = []
    with gzip.open(shared_data / "wikidata/real_graph_edges.tsv.gz", "rt", encoding="utf-8") as lines:
        for child, name, value in (line.rstrip("\n").split("\t") for line in lines):
            if child[0] == "Q" and value[0] == "Q" and value != "Q0":
                said.append(Said(int(child[1:]), name, int(value[1:])))
    labels = {}
    with gzip.open(shared_data / "wikidata/real_graph_labels_en.tsv.gz", "rt", encoding="utf-8") as lines:
        for qid, label in (line.rstrip("\n").split("\t", 1) for line in lines):
            if qid[0] == "Q":
                labels[int(qid[1:])] = {"en": label}
    return make_graph(tmp_path_factory.mktemp("real") / "w", said, labels=labels)


def landmarks(*, excluding: tuple[str, ...]) -> Concept:
    """The shipped concept with six hops and other exclusions, for every country."""
    concept = with_hops(load_concept("landmarks"), 6)
    return concept.model_copy(update={"exclude": Exclusions(classes=excluding), "countries": "all"})


def artifacts(found: Preview) -> dict[str, str | None]:
    return {qid: label for root in found.roots for hop in root.hops for cell in hop.cells for qid, label in cell.sample}


def test_cities_of_the_real_hierarchy_become_landmarks_where_human_settlement_is_not_excluded(real_graph: Path) -> None:
    options = PreviewOptions(samples=1000, factor=2, least=10)
    closed = preview(real_graph, landmarks(excluding=("Q486972",)), wording="", options=options)
    opened = preview(real_graph, landmarks(excluding=()), wording="", options=options)
    assert "Q1297" not in artifacts(closed)
    assert artifacts(opened)["Q1297"] == "Chicago"
    assert {"Lyon", "Lisbon", "Helsinki", "New York City"} <= set(artifacts(opened).values())
    assert opened.candidates - closed.candidates >= 30
    (structure,) = (root for root in opened.roots if root.qid == "Q811979")
    (explosion,) = structure.explosions
    assert explosion.hop == 5
    assert "Q486972" in {share.qid for share in explosion.by}
    assert [root.explosions for root in closed.roots if root.qid == "Q811979"] == [()]


def test_the_explanation_of_chicago_names_the_exclusion(real_graph: Path) -> None:
    told = explain(real_graph, "Q1297", landmarks(excluding=("Q486972",)))
    assert told.verdict == "out"
    assert told.reasons[0].code == "cut-by-exclusion"
    assert told.reasons[0].text.startswith("Q486972")
    assert "Q811979 > " in told.reasons[0].text
    opened = explain(real_graph, "Q1297", landmarks(excluding=()))
    assert opened.verdict == "in"
    assert [(root.qid, root.hop) for root in opened.roots] == [("Q811979", 6)]


counted_worlds = worlds(["P31", "P279", "P279", "P17", "P361"], st.integers(-1, 12), items=range(1, 10))


@settings(max_examples=50, deadline=None)
@given(world=counted_worlds)
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
