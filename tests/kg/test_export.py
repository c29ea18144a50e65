"""Exports are read back by the tools they are made for: rdflib and networkx."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.errors import UsageError
from culturekit.kg.looking.graph_formats import graphml, node_link, ntriples
from culturekit.kg.looking.neighbourhood import Neighbour, Neighbourhood, StatedEdge, neighbourhood
from culturekit.records.choices import GraphDirection
from tests.effort import examples
from tests.kg.worlds import Said, make_graph

rdflib = pytest.importorskip("rdflib")
networkx = pytest.importorskip("networkx")

ENTITY, DIRECT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
NASTY = 'a "quote", a \\ backslash, <tag> & amp;\r\n\ttab \u0085 \u2028 \x7f 東京 🎎'


def small_world(folder: Path) -> Path:
    world = [
        Said(2, "P279", 1), Said(3, "P31", 2), Said(3, "P279", 2), Said(3, "P17", 17, "preferred"),
        Said(3, "P17", 30), Said(4, "P31", 3), Said(5, "P31", 2, "deprecated"), Said(3, "P495", 0),
    ]  # fmt: skip
    return make_graph(folder, world, items=[1], labels={3: {"mul": NASTY}, 2: {"en": "a class"}})


def test_rdflib_reads_the_triples_of_best_rank_and_the_labels(tmp_path: Path) -> None:
    around = neighbourhood(small_world(tmp_path / "w"), "Q3", hops=1)
    graph = rdflib.Graph().parse(data="".join(ntriples(around)), format="nt")
    iri = rdflib.URIRef
    stated = {(str(s), str(p), str(o)) for s, p, o in graph if str(p).startswith(DIRECT)}
    assert stated == {
        (f"{ENTITY}Q{s}", f"{DIRECT}{p}", f"{ENTITY}Q{o}")
        for s, p, o in ((2, "P279", 1), (3, "P31", 2), (3, "P279", 2), (3, "P17", 17), (4, "P31", 3))
    }
    (label,) = graph.objects(iri(f"{ENTITY}Q3"), rdflib.RDFS.label)
    assert (str(label), label.language) == (NASTY, "mul")
    (country,) = graph.objects(iri(f"{ENTITY}Q17"), rdflib.RDFS.label)
    assert str(country) == "Japan"


def test_networkx_reads_the_others_with_labels_and_every_rank(tmp_path: Path) -> None:
    around = neighbourhood(small_world(tmp_path / "w"), "Q3", hops=1)
    (tmp_path / "g.graphml").write_bytes("".join(graphml(around)).encode())
    xml = networkx.read_graphml(tmp_path / "g.graphml", force_multigraph=True)
    linked = networkx.node_link_graph(json.loads("".join(node_link(around))), edges="edges")
    for graph in (xml, linked):
        assert graph.is_directed()
        assert graph.is_multigraph()
        assert set(graph) == {"Q1", "Q2", "Q3", "Q4", "Q17", "Q30"}
        assert graph.nodes["Q3"]["label"] == NASTY
        assert graph.nodes["Q3"]["hop"] == 0
        assert "hop" not in graph.nodes["Q30"]
        edges = {(s, o, d["property"], d["rank"], d["truthy"]) for s, o, d in graph.edges(data=True)}
        assert edges == {
            ("Q2", "Q1", "P279", "normal", True), ("Q3", "Q2", "P31", "normal", True),
            ("Q3", "Q2", "P279", "normal", True), ("Q3", "Q17", "P17", "preferred", True),
            ("Q3", "Q30", "P17", "normal", False), ("Q4", "Q3", "P31", "normal", True),
        }  # fmt: skip


@settings(max_examples=examples(200), deadline=None)
@given(label=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_label_comes_back_as_it_was(label: str) -> None:
    edge = StatedEdge(1, "P31", 0, 1, "normal", False, True, True)
    around = Neighbourhood(1, (Neighbour(1, label, "en", None, 0),), (edge,), 0)
    graph = rdflib.Graph().parse(data="".join(ntriples(around)).encode(), format="nt")
    (read,) = graph.objects(rdflib.URIRef(f"{ENTITY}Q1"), rdflib.RDFS.label)
    assert str(read) == label
    linked = networkx.node_link_graph(json.loads("".join(node_link(around))), edges="edges")
    assert linked.nodes["Q1"]["label"] == label
    xml = networkx.parse_graphml("".join(graphml(around)), force_multigraph=True)
    forbidden = {*map(chr, range(32)), "\ufffe", "\uffff"} - {"\t", "\n", "\r"}
    assert xml.nodes["Q1"]["label"] == "".join("\ufffd" if c in forbidden else c for c in label)
    assert xml.edges["Q1", "Q1", "Q1-P31-0"]["ended"] is True


@pytest.mark.parametrize(
    ("direction", "hops", "expected"),
    [
        ("up", 1, {3: 0, 2: 1}),
        ("up", 2, {3: 0, 2: 1, 1: 2}),
        ("down", 1, {3: 0, 4: 1}),
        ("both", 1, {3: 0, 2: 1, 4: 1}),
        ("both", 0, {3: 0}),
    ],
)
def test_a_neighbourhood_goes_where_it_is_told(
    tmp_path: Path, direction: GraphDirection, hops: int, expected: dict[int, int]
) -> None:
    around = neighbourhood(small_world(tmp_path / "w"), "Q3", hops=hops, direction=direction)
    assert {item.number: item.hop for item in around.items if item.hop is not None} == expected
    assert around.left_out == 0


def test_a_large_neighbourhood_is_cut_and_says_so(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", [Said(n, "P31", 1) for n in range(2, 32)], items=[1])
    around = neighbourhood(graph, "Q1", hops=3, most=11)
    assert (len(around.items), around.left_out) == (11, 20)
    with pytest.raises(UsageError, match="never mentions"):
        neighbourhood(graph, "Q999", hops=1)
