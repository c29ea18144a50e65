"""A graph of another tool becomes a store on which a walk finds what it found in the first."""

import json
from pathlib import Path

import networkx
import polars as pl
import pytest

from culturekit.core.choices import GraphFormat
from culturekit.core.errors import UsageError
from culturekit.core.schemas import ITEMS, STATEMENTS
from culturekit.core.tables import read_table
from culturekit.core.work import Work
from culturekit.kg.exchange.graph_files import SUFFIXES, from_networkx, graph_file, import_graph, neighbourhood
from culturekit.kg.inspection.explain import explain
from tests.conftest import HeardProgress, HereEngine
from tests.kg.worlds import Said, concept_of, make_graph

WORLD = [
    Said(2, "P279", 1), Said(3, "P31", 2), Said(3, "P17", 17, "preferred"), Said(3, "P17", 30), Said(4, "P31", 2),
    Said(5, "P31", 2, "deprecated"), Said(4, "P495", 30, ended=True),
]  # fmt: skip


def imported(file: Path, form: GraphFormat, folder: Path) -> Path:
    out = folder / "imported"
    out.mkdir()
    outcome = import_graph(Work({}, out, folder, HereEngine(), HeardProgress()), file, form)
    assert outcome.counts["items"] == read_table(out / "items.parquet", ITEMS).height
    return out


@pytest.mark.parametrize("form", list(SUFFIXES))
def test_what_is_imported_is_explained_as_before(tmp_path: Path, form: GraphFormat) -> None:
    graph = make_graph(tmp_path / "w", WORLD, items=[1])
    around, _ = neighbourhood(graph, "Q2", hops=3)
    (tmp_path / "file").write_bytes(graph_file(around, form))
    copy = imported(tmp_path / "file", form, tmp_path)
    for item in ("Q3", "Q4", "Q5"):
        before, after = (explain(folder, item, concept_of({1: None})) for folder in (graph, copy))
        assert (after.verdict, after.roots, after.open_paths) == (before.verdict, before.roots, before.open_paths)
    if form in {"graphml", "node-link"}:
        assert graph_file(neighbourhood(copy, "Q2", hops=3)[0], form) == (tmp_path / "file").read_bytes()
        known = pl.col("value").is_not_null()
        rows = [read_table(folder / "statements.parquet", STATEMENTS).filter(known) for folder in (graph, copy)]
        assert rows[1].equals(rows[0].filter(pl.col("number") != 5)), "Q5 is not near by a statement that counts"


def test_a_file_without_statements_is_refused(tmp_path: Path) -> None:
    empty, _ = neighbourhood(make_graph(tmp_path / "w", WORLD, items=[1]), "Q1", hops=0)
    assert len(empty) == 1
    (tmp_path / "file").write_bytes(graph_file(empty, "graphml"))
    with pytest.raises(UsageError, match="no statement about items"):
        imported(tmp_path / "file", "graphml", tmp_path)


def test_triples_about_other_things_are_counted(tmp_path: Path) -> None:
    entity, direct = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
    lines = (
        f"<{entity}Q2> <{direct}P279> <{entity}Q1> .\n<{entity}Q2> <{direct}P18> <http://x/y.jpg> .\n"
        f"<{entity}Q0> <{direct}P31> <{entity}Q1> .\n<{entity}Q99999999999> <{direct}P31> <{entity}Q1> .\n"
    )
    (tmp_path / "file").write_text(lines, encoding="utf-8")
    out = tmp_path / "out"
    out.mkdir()
    outcome = import_graph(Work({}, out, tmp_path, HereEngine(), HeardProgress()), tmp_path / "file", "ntriples")
    assert (outcome.counts["items"], dict(outcome.drops)) == (1, {"not-about-items": 3})


def node_link(*keys: str, label: str = "three") -> bytes:
    edges = [{"source": "Q3", "target": f"Q{n}", "key": key, "property": "P31"} for n, key in enumerate(keys, 5)]
    nodes = [{"id": name} for name in {edge["target"] for edge in edges}]
    data = {"directed": True, "multigraph": True, "graph": {}, "nodes": [{"id": "Q3", "label": label}, *nodes]}
    return json.dumps({**data, "edges": edges}).encode()


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        (("P31-99999",), [5]),
        (("P31-65535", "P31-65535"), [5, 6]),
        (("P31-2", "P31-1", "x"), [7, 6, 5]),
    ],
)
def test_statements_stand_in_the_order_of_their_keys(tmp_path: Path, keys: tuple[str, ...], values: list[int]) -> None:
    (tmp_path / "file").write_bytes(node_link(*keys))
    stated = read_table(imported(tmp_path / "file", "node-link", tmp_path) / "statements.parquet", STATEMENTS)
    assert stated["position"].to_list() == list(range(len(keys)))
    assert stated["value"].to_list() == values


def test_more_statements_than_positions_are_refused() -> None:
    graph = networkx.MultiDiGraph()
    graph.add_edges_from(("Q3", f"Q{number}", {"property": "P31"}) for number in range(10, 10 + 65_537))
    with pytest.raises(UsageError, match="65,536 at most, found 65,537"):
        from_networkx(graph)


def test_halves_of_characters_in_labels_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "linked").write_bytes(node_link("P31-0", label="a\ud800b"))
    entity, direct = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
    (tmp_path / "triples").write_text(
        f"<{entity}Q3> <{direct}P31> <{entity}Q5> .\n"
        f'<{entity}Q3> <http://www.w3.org/2000/01/rdf-schema#label> "a\\uD800b" .\n'
    )
    for name, form in (("linked", "node-link"), ("triples", "ntriples")):
        folder = tmp_path / form
        folder.mkdir()
        items = read_table(imported(tmp_path / name, form, folder) / "items.parquet", ITEMS)  # type: ignore[arg-type]
        assert items.filter(qid="Q3")["label"].to_list() == ["a\ufffdb"], form
