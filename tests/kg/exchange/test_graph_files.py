"""Exports are read back, by the tools they are made for and by culturekit."""

import json
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
    neighbourhood,
    read_graph_file,
    read_triples,
)
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
    around, _ = neighbourhood(small_world(tmp_path / "w"), "Q3", hops=1)
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
    around, _ = neighbourhood(small_world(tmp_path / "w"), "Q3", hops=1)
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
    around = networkx.MultiDiGraph(around="Q1")
    around.add_node("Q1", label=label, label_language="en", hop=0)
    stated = {"property": "P31", "rank": "normal", "qualified": False, "ended": True, "truthy": True}
    around.add_edge("Q1", "Q1", "P31-0", **stated)
    forms: tuple[GraphFormat, ...] = ("ntriples", "turtle", "json-ld")
    for form in forms:
        file.write_bytes(graph_file(around, form))
        read, others = read_graph_file(file, form)
        assert (dict(read.nodes(data="label")), others) == ({"Q1": label}, 0), form
        assert list(read.edges(data="property")) == [("Q1", "Q1", "P31")]
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
    around, left_out = neighbourhood(small_world(tmp_path / "w"), "Q3", hops=hops, direction=direction)
    assert {int(qid[1:]): hop for qid, hop in around.nodes(data="hop") if hop is not None} == expected
    assert left_out == 0


def test_a_large_neighbourhood_is_cut_and_says_so(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", [Said(n, "P31", 1) for n in range(2, 32)], items=[1])
    around, left_out = neighbourhood(graph, "Q1", hops=3, most=11)
    assert (len(around), left_out) == (11, 20)
    with pytest.raises(UsageError, match="never mentions"):
        neighbourhood(graph, "Q999", hops=1)


@pytest.mark.parametrize("form", ["graphml", "node-link"])
def test_a_graph_comes_back_as_it_was(tmp_path: Path, form: GraphFormat) -> None:
    around, _ = neighbourhood(small_world(tmp_path / "w"), "Q3", hops=2)
    file = tmp_path / f"g{SUFFIXES[form]}"
    file.write_bytes(graph_file(around, form))
    assert form_of(file) == form
    read, others = read_graph_file(file, form)
    assert (dict(read.nodes(data=True)), read.adj, others) == (dict(around.nodes(data=True)), around.adj, 0)
    assert graph_file(read, form) == file.read_bytes()


@pytest.mark.parametrize("form", ["ntriples", "turtle", "json-ld"])
def test_triples_come_back_with_what_triples_hold(tmp_path: Path, form: GraphFormat) -> None:
    around, _ = neighbourhood(small_world(tmp_path / "w"), "Q3", hops=2)
    file = tmp_path / f"g{SUFFIXES[form]}"
    file.write_bytes(graph_file(around, form))
    assert file.read_bytes() == graph_file(around, form), "equal graphs give equal bytes"
    read, others = read_graph_file(file, form)
    assert others == 0
    truthy = {(a, b, stated["property"]) for a, b, stated in around.edges(data=True) if stated["truthy"]}
    assert set(read.edges(data="property")) == truthy
    terms = ("label", "label_language")
    named, again = (
        {qid: [known[term] for term in terms] for qid, known in graph.nodes(data=True) if "label" in known}
        for graph in (around, read)
    )
    assert again == named
    assert len(read_triples(file)) == read.number_of_edges() + len(named)


def test_any_graph_of_networkx_with_properties_is_read() -> None:
    graph = networkx.DiGraph()
    graph.add_node("Q3", label="three")
    graph.add_edge("Q3", "Q2", property="P31")
    graph.add_edge("Q3", "Q5", property="P31", rank="preferred")
    read = from_networkx(graph)
    assert [(*edge[:3], edge[3]["rank"], edge[3]["truthy"]) for edge in read.edges(keys=True, data=True)] == [
        ("Q3", "Q2", "P31-0", "normal", False), ("Q3", "Q5", "P31-1", "preferred", True),
    ]  # fmt: skip
    assert set(read) == {"Q2", "Q3", "Q5"}


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
