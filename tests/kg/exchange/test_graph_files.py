"""Exports are read back, by the tools they are made for and by culturekit."""

import io
import json
import socket
from pathlib import Path
from xml.etree import ElementTree

import networkx
import polars as pl
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from rdflib import Graph

from culturekit.core.choices import GraphDirection, GraphFormat
from culturekit.core.errors import UsageError
from culturekit.core.schemas import ITEMS, STATEMENTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.kg.exchange.graph_files import (
    SUFFIXES,
    ask_graph,
    form_of,
    graph_file,
    import_graph,
    neighbourhood,
    rdf_graph,
    read_graph_file,
    read_triples,
)
from culturekit.kg.exchange.path_drawing import HEIGHT, WIDTH, draw_paths, drawing_of, png_of, svg_of
from culturekit.kg.inspection.explain import Explanation, explain
from tests.conftest import HeardProgress, HereEngine
from tests.effort import examples
from tests.kg.worlds import Said, concept_of, make_graph

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
        items, rows, others = read_graph_file(file, form)
        assert (items, others) == ({1: (label, "en", None)}, 0), form
        assert [row[:4] for row in rows] == [(1, "P31", 0, 1)]
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


WORLD = [
    Said(2, "P279", 1), Said(3, "P31", 2), Said(3, "P17", 17, "preferred"), Said(3, "P17", 30), Said(4, "P31", 2),
    Said(5, "P31", 2, "deprecated"), Said(4, "P495", 30, ended=True),
]  # fmt: skip


@pytest.mark.parametrize("form", list(SUFFIXES))
def test_what_is_imported_is_explained_as_before_and_comes_back_as_it_was(tmp_path: Path, form: GraphFormat) -> None:
    labels = {3: {"mul": NASTY}, 2: {"en": "a class"}}
    graph = make_graph(tmp_path / "w", WORLD, items=[1], labels=labels)
    around, _ = neighbourhood(graph, "Q2", hops=3)
    file = tmp_path / f"g{SUFFIXES[form]}"
    file.write_bytes(graph_file(around, form))
    assert form_of(file) == form
    copy = imported(file, form, tmp_path)
    for item in ("Q3", "Q4", "Q5"):
        before, after = (explain(folder, item, concept_of({1: None})) for folder in (graph, copy))
        assert (after.verdict, after.roots, after.open_paths) == (before.verdict, before.roots, before.open_paths)
    if form in {"graphml", "node-link"}:
        again, _ = neighbourhood(copy, "Q2", hops=3)
        assert (dict(again.nodes(data=True)), again.adj) == (dict(around.nodes(data=True)), around.adj)
        assert graph_file(again, form) == file.read_bytes()
        known = pl.col("value").is_not_null()
        rows = [read_table(folder / "statements.parquet", STATEMENTS).filter(known) for folder in (graph, copy)]
        assert rows[1].equals(rows[0].filter(pl.col("number") != 5)), "Q5 is not near by a statement that counts"


@pytest.mark.parametrize("form", ["ntriples", "turtle", "json-ld"])
def test_triples_come_back_with_what_triples_hold(tmp_path: Path, form: GraphFormat) -> None:
    around, _ = neighbourhood(small_world(tmp_path / "w"), "Q3", hops=2)
    file = tmp_path / f"g{SUFFIXES[form]}"
    file.write_bytes(graph_file(around, form))
    assert file.read_bytes() == graph_file(around, form), "equal graphs give equal bytes"
    items, rows, others = read_graph_file(file, form)
    truthy = {(a, b, stated["property"]) for a, b, stated in around.edges(data=True) if stated["truthy"]}
    assert ({(f"Q{a}", f"Q{b}", name) for a, name, _, b, *_ in rows}, others) == (truthy, 0)
    named = {qid: (known["label"], known["label_language"], None) for qid, known in around.nodes(data=True)
             if "label" in known}  # fmt: skip
    assert {f"Q{number}": item for number, item in items.items()} == named
    assert len(read_triples(file)) == len(rows) + len(named)


def linked_file(folder: Path, graph: "networkx.Graph[str]") -> Path:
    file = folder / "linked.json"
    file.write_text(json.dumps(networkx.node_link_data(graph, edges="edges")), encoding="utf-8")
    return file


def test_any_graph_of_networkx_with_properties_is_read(tmp_path: Path) -> None:
    graph = networkx.DiGraph()
    graph.add_node("Q3", label="three")
    graph.add_edge("Q3", "Q2", property="P31")
    graph.add_edge("Q3", "Q5", property="P31", rank="preferred")
    folder = imported(linked_file(tmp_path, graph), "node-link", tmp_path)
    stated = read_table(folder / "statements.parquet", STATEMENTS)
    assert stated.select("number", "property", "position", "value", "rank").rows() == [
        (3, "P31", 0, 2, "normal"), (3, "P31", 1, 5, "preferred"),
    ]  # fmt: skip
    assert read_table(folder / "items.parquet", ITEMS)["label"].to_list() == ["three"]


@pytest.mark.parametrize(
    ("edge", "problem"),
    [
        ({}, "an edge needs a property"),
        ({"property": "31"}, "an edge needs a property"),
        ({"property": "P31", "rank": "best"}, "not a rank"),
        ({"property": "P31", "ended": "no"}, "true or false"),
    ],
)
def test_an_edge_that_says_nothing_usable_is_refused(edge: dict[str, object], problem: str, tmp_path: Path) -> None:
    graph = networkx.MultiDiGraph()
    graph.add_edge("Q1", "Q2", **edge)
    with pytest.raises(UsageError, match=problem):
        read_graph_file(linked_file(tmp_path, graph), "node-link")


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


# SPARQL is answered from what is here, and from nowhere else.


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    world = [Said(2, "P279", 1), Said(3, "P31", 2), Said(4, "P31", 2), Said(3, "P17", 17)]
    found = rdf_graph(neighbourhood(make_graph(tmp_path / "w", world, items=[1]), "Q2", hops=1)[0])

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a query reaches for the network")

    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.setattr(socket, "create_connection", refused)
    return found


def test_each_kind_of_query_is_answered(graph: Graph) -> None:
    below = "?x wdt:P31/wdt:P279 wd:Q1; rdfs:label ?name OPTIONAL { ?x wdt:P17 ?at }"
    select = ask_graph(graph, f"SELECT ?x ?name ?at {{ {below} }} ORDER BY ?x", most=5)
    assert (select.kind, select.columns) == ("SELECT", ("x", "name", "at"))
    assert select.rows == (("wd:Q3", "item 3", "wd:Q17"), ("wd:Q4", "item 4", None))
    assert not select.more
    assert [ask_graph(graph, f"ASK {{ wd:Q3 wdt:P31 wd:Q{n} }}", most=1).yes for n in (2, 9)] == [True, False]
    triples = ask_graph(graph, "CONSTRUCT { ?b rdfs:seeAlso ?a } WHERE { ?a wdt:P31 ?b }", most=1)
    assert (triples.columns, triples.more) == (("subject", "predicate", "object"), True)
    assert triples.rows == (("wd:Q2", "rdfs:seeAlso", "wd:Q3"),)
    assert len(ask_graph(graph, "DESCRIBE wd:Q3", most=9).rows) == 3
    unbound = ask_graph(graph, "SELECT (1/0 AS ?b) { ?s wdt:P31 wd:Q2 }", most=1)
    assert (unbound.columns, unbound.rows, unbound.more) == (("b",), ((None,),), True)
    cast = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT (xsd:integer('7') AS ?b) {}"
    assert ask_graph(graph, cast, most=1).rows == (("7",),)


ELSEWHERE, UNKNOWN = "something elsewhere", r"a function that is not known here.*found http://x/f"
SERVICE = "SERVICE <http://127.0.0.1:9/> { ?s ?p ?o }"
REFUSED = {
    f"SELECT * {{ {SERVICE} }}": ELSEWHERE,
    f"SELECT * {{ ?s ?p ?o FILTER EXISTS {{ {SERVICE} }} }}": ELSEWHERE,
    "SELECT * { { SELECT ?s { SERVICE SILENT ?u { ?s ?p ?o } } } VALUES ?u { <http://127.0.0.1:9/> } }": ELSEWHERE,
    f"SELECT * {{ ?s ?p ?o BIND(EXISTS {{ {SERVICE} }} AS ?e) }}": ELSEWHERE,
    f"ASK {{ OPTIONAL {{ ?s ?p ?o MINUS {{ {SERVICE} }} }} }}": ELSEWHERE,
    "SELECT (MAX(IF(EXISTS { SERVICE <http://127.0.0.1:9/> {} }, 1, 2)) AS ?x) { ?s ?p ?o } GROUP BY ?s": ELSEWHERE,
    f"ASK {{ ?s ?p ?o FILTER EXISTS {{ ?s ?p ?v FILTER EXISTS {{ {SERVICE} }} }} }}": ELSEWHERE,
    "SELECT * FROM <http://127.0.0.1:9/> { ?s ?p ?o }": ELSEWHERE,
    "CONSTRUCT { ?s ?p ?o } FROM NAMED <file:///etc/hostname> { GRAPH ?g { ?s ?p ?o } }": ELSEWHERE,
    "LOAD <http://127.0.0.1:9/>": "not a SPARQL query.*SELECT, ASK, CONSTRUCT or DESCRIBE",
    "INSERT DATA { wd:Q1 wdt:P31 wd:Q2 }": "not a SPARQL query",
    "SELECT ?x { ?x ": r"not a SPARQL query.*line:1",
    "SELECT ?x { ?x foo:bar ?y }": "Unknown namespace prefix : foo.*other prefixes need PREFIX",
    "ASK " + "{" * 5000: "not a SPARQL query|nested too deeply",
    "": "not a SPARQL query",
    "SELECT (<http://x/f>(?s) AS ?b) { ?s ?p ?o }": UNKNOWN,
    "SELECT ?s { ?s ?p ?o FILTER(!EXISTS { ?s ?p ?v FILTER(<http://x/f>(?v)) }) }": UNKNOWN,
    "PREFIX x: <http://x/> SELECT ?s { ?s ?p ?o } ORDER BY x:f(?s)": UNKNOWN,
}


@pytest.mark.parametrize("query", REFUSED, ids=lambda query: query[:40])
def test_nothing_is_asked_elsewhere_and_what_is_no_query_is_said(graph: Graph, query: str) -> None:
    with pytest.raises(UsageError, match=REFUSED[query]):
        ask_graph(graph, query, most=5)


def test_a_file_is_answered_in_the_words_of_a_graph_and_without_halves_of_characters(tmp_path: Path) -> None:
    file = tmp_path / "x.nt"
    file.write_text('<http://www.wikidata.org/entity/Q2> <http://www.wikidata.org/prop/direct/P1> "a\\uD800b" .\n')
    assert ask_graph(read_triples(file), "SELECT ?s ?p ?o { ?s ?p ?o }", most=1).rows == (
        ("wd:Q2", "wdt:P1", "a\ufffdb"),
    )


# A graph of another tool becomes a store on which a walk finds what it found in the first.


def imported(file: Path, form: GraphFormat, folder: Path) -> Path:
    out = folder / "imported"
    out.mkdir()
    outcome = import_graph(Work({}, out, folder, HereEngine(), HeardProgress()), file, form)
    assert outcome.counts["items"] == read_table(out / "items.parquet", ITEMS).height
    return out


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
    [(("P31-99999",), [5]), (("P31-65535", "P31-65535"), [5, 6]), (("P31-2", "P31-1", "x"), [7, 6, 5])],
)
def test_statements_stand_in_the_order_of_their_keys(tmp_path: Path, keys: tuple[str, ...], values: list[int]) -> None:
    (tmp_path / "file").write_bytes(node_link(*keys))
    stated = read_table(imported(tmp_path / "file", "node-link", tmp_path) / "statements.parquet", STATEMENTS)
    assert stated["position"].to_list() == list(range(len(keys)))
    assert stated["value"].to_list() == values


def test_more_statements_than_positions_are_refused(tmp_path: Path) -> None:
    graph = networkx.MultiDiGraph()
    graph.add_edges_from(("Q3", f"Q{number}", {"property": "P31"}) for number in range(10, 10 + 65_537))
    with pytest.raises(UsageError, match="65,536 at most, found 65,537"):
        imported(linked_file(tmp_path, graph), "node-link", tmp_path)


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


SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def explained(tmp_path: Path) -> Explanation:
    world = [
        Said(2, "P279", 1), Said(3, "P279", 1), Said(4, "P31", 2), Said(4, "P31", 3), Said(4, "P279", 3),
        Said(4, "P31", 1, "deprecated"), Said(4, "P17", 30), Said(3, "P279", 2),
    ]  # fmt: skip
    labels = {2: {"en": "a <b> & \x01 c"}, 4: {"en": "a label that is much too long for its box"}}
    return explain(make_graph(tmp_path / "w", world, items=[1], labels=labels), "Q4", concept_of({1: None}))


def test_boxes_and_arrows_are_those_of_the_paths(explained: Explanation) -> None:
    drawing = drawing_of(explained)
    assert sorted(drawing.boxes) == ["Q1", "Q2", "Q3", "Q4"]
    assert set(drawing.arrows) == {
        ("Q1", "Q2", "P279", False), ("Q1", "Q3", "P279", False), ("Q2", "Q3", "P279", False),
        ("Q2", "Q4", "P31", False), ("Q3", "Q4", "P279, P31", False), ("Q1", "Q4", "P31", True),
    }  # fmt: skip
    across = {qid: x for qid, (x, _, _) in drawing.boxes.items()}
    assert across["Q1"] < across["Q2"] < across["Q3"] < across["Q4"], "as far from the left as the longest path"
    for x, y, _ in drawing.boxes.values():
        assert WIDTH / 2 <= x <= drawing.width - WIDTH / 2
        assert HEIGHT / 2 <= y <= drawing.height - HEIGHT / 2
    assert len({(x, y) for x, y, _ in drawing.boxes.values()}) == len(drawing.boxes)


def test_the_svg_is_one_any_reader_takes(explained: Explanation) -> None:
    drawing = drawing_of(explained)
    picture = ElementTree.fromstring(svg_of(drawing))
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert "a <b> & \ufffd c" in texts
    assert "a label that is much to…" in texts
    assert "Q4 is an artifact of any" in texts
    assert len(list(picture.iter(f"{SVG}line"))) == len(drawing.arrows)
    assert sum("stroke-dasharray" in line.attrib for line in picture.iter(f"{SVG}line")) == 1
    assert svg_of(drawing) == svg_of(drawing_of(explained))


def test_svg_and_png_are_drawn_in_one_size_and_nothing_else(explained: Explanation, tmp_path: Path) -> None:
    drawing = drawing_of(explained)
    with Image.open(io.BytesIO(png_of(drawing))) as image:
        assert image.size == (drawing.width, drawing.height)
        assert len(image.getcolors(1 << 20) or ()) > 4
    with pytest.raises(UsageError, match=r"\.svg or \.png"):
        draw_paths(explained, tmp_path / "x.gif")
    draw_paths(explained, tmp_path / "x.SVG")
    assert (tmp_path / "x.SVG").read_bytes() == svg_of(drawing)
