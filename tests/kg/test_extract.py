"""Extraction held against a naive walk, preview and explain; what it writes, refuses and ends at."""

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from culturekit.cli.app import app
from culturekit.core.errors import ConfigError, IntegrityError, UsageError
from culturekit.core.schemas import AUTHORS_ROWS, CANDIDATES, DROPS
from culturekit.core.stage import input_records, key_of
from culturekit.core.tables import read_table
from culturekit.kg import store
from culturekit.kg.concepts import Concept, Exclusions, Root, RootChoice, load_concept, load_successors
from culturekit.kg.exchange.extract_stage import extract_stage
from culturekit.kg.extract import ExtractOptions, extract
from culturekit.kg.inspection.explain import explain
from culturekit.kg.inspection.preview import PreviewOptions, preview
from tests.effort import examples
from tests.kg.worlds import ITEMS, Naive, Said, World, concept_of, loops, make_graph, work_in, worlds

FRANCE, SOVIET_UNION, RUSSIA = 142, 15180, 159

FOOD = Concept(concept="food", hops=2, roots=(Root(qid="Q1", label="food"),))
CONFIG = "concept: food\nhops: 2\nroots: [{qid: Q1, label: food}]\n"

WORLD = [
    Said(2, "P279", 1), Said(3, "P31", 2), Said(3, "P495", SOVIET_UNION, ended=True), Said(3, "P17", FRANCE),
    Said(3, "P17", 0), Said(4, "P31", 2, rank="deprecated"), Said(4, "P17", FRANCE), Said(5, "P31", 3),
    Said(5, "P17", FRANCE, rank="preferred"), Said(5, "P17", RUSSIA),
]  # fmt: skip


def candidates_by(graph: Path, folder: Path, *options: str) -> dict[str, list[str]]:
    """Extract on the command line; give the countries of each candidate."""
    (folder / "food.yaml").write_text(CONFIG, encoding="utf-8")
    words = ["kg", "extract", "--graph", str(graph), "--roots", str(folder / "food.yaml")]
    done = CliRunner().invoke(app, [*words, "--out", str(folder / "out"), *options])
    assert done.exit_code == 0, done.output
    return dict(read_table(folder / "out/candidates.parquet", CANDIDATES).select("qid", "country_qids").rows())


@pytest.mark.endtoend
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), {"Q3": ["Q15180", "Q142"]}),
        (("--ranks", "all"), {"Q3": ["Q15180", "Q142"], "Q4": ["Q142"]}),
        (("--ended", "drop"), {"Q3": ["Q142"]}),
        (("--countries", "P495-first"), {"Q3": ["Q15180"]}),
        (("--successors", "heirs.yaml"), {"Q3": ["Q159", "Q142"]}),
        (("--expand-artifacts", "--hops", "3"), {"Q3": ["Q15180", "Q142"], "Q5": ["Q142", "Q159"]}),
        (("--expand-artifacts", "--hops", "3", "--ranks", "truthy"), {"Q3": ["Q15180", "Q142"], "Q5": ["Q142"]}),
        (("--hops", "1"), {}),
    ],
)
def test_every_decision_is_an_option_of_the_command(
    options: tuple[str, ...], expected: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("heirs.yaml").write_text("successors: {Q15180: Q3000, Q3000: Q159}\n", encoding="utf-8")
    assert candidates_by(published(tmp_path), tmp_path, *options) == expected


def published(folder: Path) -> Path:
    """Ingest the world with the command."""
    make_graph(folder / "world", WORLD, ITEMS)
    words = ["kg", "ingest", str(folder / "world/dump.json"), "--out", str(folder / "graph")]
    assert CliRunner().invoke(app, words).exit_code == 0
    return folder / "graph"


def test_a_statement_without_a_value_is_neither_edge_nor_country_and_is_flagged(tmp_path: Path) -> None:
    world = [*WORLD, Said(6, "P31", 2), Said(6, "P495", -1), Said(6, "P17", 0), Said(7, "P31", 0), Said(7, "P17", 5)]
    work = work_in(tmp_path / "out")
    outcome = extract(work, make_graph(tmp_path, world, ITEMS), [FOOD])
    rows = read_table(work.out / "candidates.parquet", CANDIDATES)
    assert rows.select("qid", "valueless", "p495", "p17").rows() == [("Q3", ["P17 novalue"], ["Q15180"], ["Q142"])]
    assert outcome.notes["candidates with valueless statements"] == 1


def test_an_artifact_of_no_wanted_country_is_dropped_with_its_countries(tmp_path: Path) -> None:
    work = work_in(tmp_path / "out")
    world = [*WORLD, Said(6, "P31", 1), Said(6, "P17", RUSSIA), Said(6, "P17", 77)]
    outcome = extract(work, make_graph(tmp_path, world, ITEMS), [FOOD.model_copy(update={"countries": ("FR",)})])
    assert read_table(work.out / "candidates.parquet", CANDIDATES)["qid"].to_list() == ["Q3"]
    drops = read_table(work.out / "drops.parquet", DROPS)
    assert drops.select("key", "reason", "detail").rows() == [("Q6", "country out of scope", "Q159 Q77")]
    assert outcome.drops == {"country out of scope": 1}


def test_forty_hops_end_in_a_tangle_of_cycles_and_go_no_further_down_a_chain(tmp_path: Path) -> None:
    tangle = [Said(child, "P279", parent) for child in range(1, 9) for parent in range(1, 9)]
    chain = [Said(number + 1, "P279", number) for number in range(100, 150)]
    countries = [Said(number, "P17", 5000) for number in (8, 140, 141)]
    roots = (Root(qid="Q1", label=""), Root(qid="Q100", label=""))
    work = work_in(tmp_path / "out")
    graph = make_graph(tmp_path, [*tangle, *chain, *countries], ITEMS)
    outcome = extract(work, graph, [FOOD.model_copy(update={"hops": 40, "roots": roots})])
    rows = read_table(work.out / "candidates.parquet", CANDIDATES)
    assert rows.select("qid", "hop").rows() == [("Q140", 40), ("Q8", 1)]
    assert outcome.notes["ground"] == {"self_loops": 7, "cycles": 1, "nodes_in_cycles": 7}


def test_authors_semantics_refuses_more_rows_than_are_wanted(tmp_path: Path) -> None:
    tangle = [Said(child, "P279", parent) for child in range(1, 8) for parent in range(1, 8)]
    graph = make_graph(tmp_path, [*tangle, Said(8, "P31", 1), Said(8, "P17", 5000)], ITEMS)
    deep = FOOD.model_copy(update={"hops": 40})
    with pytest.raises(UsageError, match=r"too many ways .* at most 10,000,000 rows.* by hop 11.*--max-rows"):
        extract(work_in(tmp_path / "deep"), graph, [deep], ExtractOptions("authors"))
    work = work_in(tmp_path / "out")
    extract(work, graph, [FOOD.model_copy(update={"hops": 3})], ExtractOptions("authors", most_rows=9))
    rows = read_table(work.out / "authors_rows.parquet", AUTHORS_ROWS)
    assert rows.group_by("hop").agg(pl.len(), copies=pl.col("copy").max()).sort("hop").rows() == [
        (1, 1, 1),
        (2, 1, 1),
        (3, 7, 7),
    ]
    with pytest.raises(UsageError, match="at most 8 rows"):
        extract(work_in(tmp_path / "less"), graph, [FOOD.model_copy(update={"hops": 3})], ExtractOptions("authors", 8))


def test_a_chain_of_successors_that_comes_back_is_refused_with_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "heirs.yaml"
    path.write_text("successors:\n  Q1: Q2\n  Q3: Q1\n  Q2: Q3\n  Q9: Q8\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_successors(path)
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4]
    path.write_text("successors: {Q15180: Russia}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="a QID is Q and a number"):
        load_successors(path)


def test_what_changes_the_rows_changes_the_key(tmp_path: Path) -> None:
    graph = published(tmp_path)
    heirs = tmp_path / "heirs.yaml"
    heirs.write_text("successors: {Q15180: Q159}\n", encoding="utf-8")
    concept = load_concept("cuisine")
    rules: list[dict[str, Any]] = [
        {"ranks": "all"}, {"ended": "drop"}, {"country_choice": "P495-first"}, {"expand_artifacts": True},
    ]  # fmt: skip
    stages = [
        extract_stage(graph, [concept]),
        *(extract_stage(graph, RootChoice((concept,), **rule).concepts()) for rule in rules),
        extract_stage(graph, [concept], ExtractOptions("authors")),
        extract_stage(graph, [concept], successors=heirs),
    ]
    assert len({key_of(stage, input_records(stage.inputs)) for stage in stages}) == len(stages)


def test_broken_tables_are_said_to_be_broken(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, WORLD, ITEMS)
    statements = graph / "statements.parquet"
    half = statements.read_bytes()[: statements.stat().st_size // 2]
    breaks: dict[str, Callable[[], object]] = {
        "not a statements table: column ended is missing":
            lambda: pl.read_parquet(statements).drop("ended").write_parquet(statements),
        "not a readable Parquet file": lambda: statements.write_bytes(half),
        "not a graph store": lambda: os.truncate(graph / "children.npy", 10),
    }  # fmt: skip
    for number, (message, break_it) in enumerate(breaks.items()):
        break_it()
        with pytest.raises(IntegrityError, match=message):
            extract(work_in(tmp_path / f"broken-{number}"), graph, [FOOD])


def test_the_json_of_the_command_counts_the_authors_rows(tmp_path: Path) -> None:
    graph = published(tmp_path)
    candidates_by(graph, tmp_path, "--semantics", "authors", "--max-rows", "9", "--json")
    manifest = json.loads((tmp_path / "out/manifest.json").read_bytes())
    assert manifest["counts"] == {"authors_rows": 1, "candidates": 1, "drops": 0}
    assert manifest["options"]["semantics"] == "authors"
    with pytest.raises(UsageError, match="--semantics authors"):
        ExtractOptions("default", 5)


@pytest.mark.parametrize("command", [["kg", "extract", "--out", "out"], ["kg", "preview"]])
def test_a_concept_that_stands_in_two_root_configs_is_refused(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(CONFIG.replace("food", "cuisine"), encoding="utf-8")
    words = [*command, "--graph", str(tmp_path), "--roots", "cuisine", "--roots", str(tmp_path / "mine.yaml")]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, UsageError)
    assert f"of the concept 'cuisine'; expected each concept once, found cuisine and {tmp_path}" in str(done.exception)


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
    world = [Said(n, "P279", n % 7 + 1) for n in ITEMS]
    world += [Said(3, "P17", 10), Said(8, "P495", 10), Said(8, "P31", 5)]
    one = Concept(concept="c00", hops=4, roots=tuple(Root(qid=f"Q{n}", label="") for n in range(1, 8)))
    many = [one.model_copy(update={"concept": f"c{place:02}", "hops": place % 4 + 1}) for place in range(21)]
    work = work_in(tmp_path / "out")
    outcome = extract(work, make_graph(tmp_path, world, ITEMS), many)
    walks = {concept.concept: Naive(world, concept) for concept in many}
    check_rows(work.out, walks)
    assert outcome.notes["ground"] == loops(list(walks.values()))


values = st.one_of(st.integers(-1, 8), st.sampled_from([155, 142, 30]))
statements = worlds(["P31", "P279", "P279", "P495", "P17"], values, least=6)
ruled = st.builds(
    lambda roots, scope, rules: concept_of(
        dict.fromkeys(roots), hops=3, classes=[3], items=[6], countries=scope
    ).model_copy(update=rules),
    st.lists(st.integers(1, 8), min_size=1, max_size=3, unique=True),
    st.sampled_from([None, ["BR"], ["BR", "FR"]]),
    st.fixed_dictionaries(
        {
            "ranks": st.sampled_from(["not-deprecated", "truthy", "all"]),
            "ended": st.sampled_from(["keep", "drop"]),
            "country_choice": st.sampled_from(["union", "P495-first"]),
            "expand_artifacts": st.booleans(),
        }
    ),
)


# A root with a country lies below itself; the country that counts by P495-first is out of scope; a root is excluded.
KNOWN = [Said(2, "P279", 1), Said(1, "P279", 2), Said(1, "P17", 155), Said(4, "P31", 2)]
KNOWN += [Said(4, "P495", 142), Said(4, "P17", 155), Said(5, "P31", 2), Said(5, "P17", 155)]
RULES = concept_of({1: None, 2: None}, classes=[2], countries=["BR"]).model_copy(
    update={"country_choice": "P495-first"}
)

BRAZILIAN = concept_of({1: None}, countries=["BR"])


@pytest.mark.endtoend
@example(world=KNOWN, concept=RULES, heir=False)
@example(world=[*KNOWN[:1], Said(4, "P31", 2), Said(4, "P17", 30)], concept=BRAZILIAN, heir=True)
@settings(max_examples=examples(60), deadline=None)
@given(world=statements, concept=ruled, heir=st.booleans())
def test_extract_preview_and_explain_agree(
    world: list[Said], concept: Concept, heir: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("world")
    graph = make_graph(folder / "w", world, ITEMS)
    out = work_in(folder / "out")
    successors = {30: 155} if heir else {}
    extract(out, graph, [concept], successors=successors)
    rows = {row["qid"]: row for row in pl.read_parquet(out.out / "candidates.parquet").iter_rows(named=True)}
    options = PreviewOptions(samples=100)
    found = preview(graph, concept, wording="", options=options, successors=successors)
    assert found.candidates == len(rows)
    inside = {
        qid
        for root in found.roots
        for hop in root.hops
        for cell in hop.cells
        for qid, _ in cell.sample
        if cell.country != "out of scope"
    }
    assert inside == rows.keys()
    for number in ITEMS:
        told = explain(graph, f"Q{number}", concept, successors=successors)
        assert (told.verdict == "in") == (told.qid in rows), told
        if told.qid in rows:
            row = rows[told.qid]
            assert told.roots[0].hop == row["hop"]
            assert {root.qid for root in told.roots} == set(row["roots"])
            assert tuple(step.qid for step in told.paths[0].steps) == tuple(row["path"])
            counted = {int(c.value[1:]) for c in told.countries if c.counts and c.value}
            assert {f"Q{successors.get(n, n)}" for n in counted} == set(row["country_qids"])
