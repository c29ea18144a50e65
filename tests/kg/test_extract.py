"""What an extraction writes, refuses and ends at."""

import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from culturekit.cli.app import app
from culturekit.core.errors import ConfigError, IntegrityError, UsageError
from culturekit.core.schemas import AUTHORS_ROWS, CANDIDATES, DROPS
from culturekit.core.stage import input_records, key_of
from culturekit.core.tables import read_table
from culturekit.kg.concepts import Concept, Root, RootChoice, load_concept, load_successors
from culturekit.kg.exchange.extract_stage import extract_stage
from culturekit.kg.extract import ExtractOptions, extract
from tests.kg.worlds import ITEMS, Said, make_graph, work_in

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


def test_a_bound_on_rows_that_nobody_writes_is_refused() -> None:
    with pytest.raises(UsageError, match="--semantics authors"):
        ExtractOptions("default", 5)


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
    good = statements.read_bytes()
    pl.read_parquet(statements).drop("ended").write_parquet(statements)
    with pytest.raises(IntegrityError, match="not a statements table: column ended is missing"):
        extract(work_in(tmp_path / "missing"), graph, [FOOD])
    statements.write_bytes(good[: len(good) // 2])
    with pytest.raises(IntegrityError, match="not a readable Parquet file"):
        extract(work_in(tmp_path / "short"), graph, [FOOD])
    os.truncate(graph / "children.npy", 10)
    with pytest.raises(IntegrityError, match="not a graph store"):
        extract(work_in(tmp_path / "arrays"), graph, [FOOD])


def test_the_json_of_the_command_counts_the_authors_rows(tmp_path: Path) -> None:
    graph = published(tmp_path)
    (tmp_path / "food.yaml").write_text(CONFIG, encoding="utf-8")
    words = ["kg", "extract", "--graph", str(graph), "--roots", str(tmp_path / "food.yaml"), "--semantics", "authors"]
    done = CliRunner().invoke(app, [*words, "--max-rows", "9", "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "out/manifest.json").read_bytes())
    assert manifest["counts"] == {"authors_rows": 1, "candidates": 1, "drops": 0}
    assert manifest["options"]["semantics"] == "authors"


@pytest.mark.parametrize("command", [["kg", "extract", "--out", "out"], ["kg", "preview"]])
def test_a_concept_that_stands_in_two_root_configs_is_refused(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(CONFIG.replace("food", "cuisine"), encoding="utf-8")
    words = [*command, "--graph", str(tmp_path), "--roots", "cuisine", "--roots", str(tmp_path / "mine.yaml")]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, UsageError)
    assert f"of the concept 'cuisine'; expected each concept once, found cuisine and {tmp_path}" in str(done.exception)
