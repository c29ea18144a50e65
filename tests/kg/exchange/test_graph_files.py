"""Exports are read back, by the tools they are made for and by culturekit."""

import json
from dataclasses import replace
from pathlib import Path

import networkx
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.choices import GraphDirection, GraphFormat
from culturekit.core.errors import UsageError
from culturekit.kg.exchange.graph_files import (
    SUFFIXES,
    form_of,
    from_networkx,
    graph_file,
    networkx_graph,
    read_graph_file,
    read_triples,
)
from culturekit.kg.inspection.neighbourhood import Neighbour, Neighbourhood, StatedEdge, neighbourhood
from tests.effort import examples
from tests.kg.worlds import Said, make_graph

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
    graph = rdflib.Graph().parse(data=graph_file(around, "ntriples"), format="nt")
    iri = rdflib.URIRef
    stated = {(str(s), str(p), str(o)) for s, p, o in graph if str(p).startswith(DIRECT)}
    assert stated == {
        (f"{ENTITY}Q{s}", f"{DIRECT}{p}", f"{ENTITY}Q{o}")
        for s, p, o in ((2, "P279", 1), (3, "P31", 2), (3, "P279", 2), (3, "P17", 17), (4, "P31", 3))
    }
    (label,) = graph.objects(iri(f"{ENTITY}Q3"), rdflib.RDFS.label)
    assert label == rdflib.Literal(NASTY, lang="mul")
    (country,) = graph.objects(iri(f"{ENTITY}Q17"), rdflib.RDFS.label)
    assert str(country) == "Japan"


def test_networkx_reads_the_others_with_labels_and_every_rank(tmp_path: Path) -> None:
    around = neighbourhood(small_world(tmp_path / "w"), "Q3", hops=1)
    (tmp_path / "g.graphml").write_bytes(graph_file(around, "graphml"))
    xml = networkx.read_graphml(tmp_path / "g.graphml", force_multigraph=True)
    linked = networkx.node_link_graph(json.loads(graph_file(around, "node-link")), edges="edges")
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
def test_any_label_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, label: str) -> None:
    file = tmp_path_factory.mktemp("labels") / "file"
    edge = StatedEdge(1, "P31", 0, 1, "normal", False, True, True)
    around = Neighbourhood(1, (Neighbour(1, label, "en", None, 0),), (edge,), 0)
    forms: tuple[GraphFormat, ...] = ("ntriples", "turtle", "json-ld")
    for form in forms:
        file.write_bytes(graph_file(around, form))
        read, others = read_graph_file(file, form)
        assert ([item.label for item in read.items], others) == ([label], 0), form
        assert [(e.subject, e.property, e.value) for e in read.edges] == [(1, "P31", 1)]
    linked = networkx.node_link_graph(json.loads(graph_file(around, "node-link")), edges="edges")
    assert linked.nodes["Q1"]["label"] == label
    xml = networkx.parse_graphml(graph_file(around, "graphml").decode(), force_multigraph=True)
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


@pytest.mark.parametrize("form", ["graphml", "node-link"])
def test_a_graph_comes_back_as_it_was(tmp_path: Path, form: GraphFormat) -> None:
    around = neighbourhood(small_world(tmp_path / "w"), "Q3", hops=2)
    file = tmp_path / f"g{SUFFIXES[form]}"
    file.write_bytes(graph_file(around, form))
    assert form_of(file) == form
    read, others = read_graph_file(file, form)
    assert (replace(read, around=3), others) == (around, 0)
    assert graph_file(replace(read, around=3), form) == file.read_bytes()


@pytest.mark.parametrize("form", ["ntriples", "turtle", "json-ld"])
def test_triples_come_back_with_what_triples_hold(tmp_path: Path, form: GraphFormat) -> None:
    around = neighbourhood(small_world(tmp_path / "w"), "Q3", hops=2)
    file = tmp_path / f"g{SUFFIXES[form]}"
    file.write_bytes(graph_file(around, form))
    assert file.read_bytes() == graph_file(around, form), "equal graphs give equal bytes"
    read, others = read_graph_file(file, form)
    assert others == 0
    assert {(e.subject, e.property, e.value) for e in read.edges} == {
        (e.subject, e.property, e.value) for e in around.edges if e.truthy
    }
    named = {item.number: (item.label, item.label_language) for item in around.items if item.label}
    assert {item.number: (item.label, item.label_language) for item in read.items if item.label} == named
    assert len(read_triples(file)) == len(read.edges) + len(named)


def test_any_graph_of_networkx_with_properties_is_read() -> None:
    graph = networkx.DiGraph()
    graph.add_node("Q3", label="three")
    graph.add_edge("Q3", "Q2", property="P31")
    graph.add_edge("Q3", "Q5", property="P31", rank="preferred")
    read = from_networkx(graph)
    assert [(e.subject, e.property, e.position, e.value, e.rank, e.truthy) for e in read.edges] == [
        (3, "P31", 0, 2, "normal", False), (3, "P31", 1, 5, "preferred", True),
    ]  # fmt: skip
    assert set(networkx_graph(read)) == {"Q2", "Q3", "Q5"}


@pytest.mark.parametrize(
    ("edge", "problem"),
    [
        ({}, "an edge needs a property"),
        ({"property": "31"}, "an edge needs a property"),
        ({"property": "P31", "rank": "best"}, "not a rank"),
        ({"property": "P31", "ended": "no"}, "true or false"),
    ],
)
def test_an_edge_that_says_nothing_usable_is_refused(edge: dict[str, object], problem: str) -> None:
    graph = networkx.MultiDiGraph()
    graph.add_edge("Q1", "Q2", **edge)
    with pytest.raises(UsageError, match=problem):
        from_networkx(graph)


BOMB = "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
    f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(9)
)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.json", "[]", "cannot be read as node-link"),
        ("x.json", '{"nodes": [{"id": "Q1"}], "edges": [{"source": "Q1"}]}', "cannot be read as node-link"),
        ("x.json", '{"nodes": [{"id": "x"}], "edges": [], "directed": true}', "a QID such as Q42"),
        ("x.json", '{"nodes": [{"id": "Q1", "label": 5}], "edges": [], "directed": true}', "x.json: Q1: label"),
        ("x.json", '{"nodes": [], "edges": [], "directed": false}', "a directed graph"),
        ("x.json", "[" * 100_000, "cannot be read as node-link"),
        ("x.graphml", "<graphml><graph>", "cannot be read as graphml"),
        ("x.graphml", f"{BOMB}]><graphml><desc>&j;</desc></graphml>", "cannot be read as graphml"),
        ("x.nt", "<a> <b>", "cannot be read as ntriples"),
        ("x.ttl", "wd:Q1 a", "cannot be read as turtle"),
        ("x.jsonld", '{"@context": "http://127.0.0.1:9/c", "@id": "x"}', "a context elsewhere is not fetched"),
        ("x.jsonld", '{"@graph": [{"@context": [{"@import": "file:///c"}]}]}', "a context elsewhere is not fetched"),
        ("x.txt", "", "no format has this suffix"),
    ],
)
def test_a_hostile_or_broken_file_is_refused(tmp_path: Path, name: str, content: str, problem: str) -> None:
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=problem):
        read_graph_file(file, form_of(file))
