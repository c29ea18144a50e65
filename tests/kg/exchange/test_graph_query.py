"""SPARQL is answered from what is here, and from nowhere else."""

import socket
from pathlib import Path

import pytest
from rdflib import Graph

from culturekit.core.errors import UsageError
from culturekit.kg.exchange.graph_files import ask_graph, neighbourhood, rdf_graph, read_triples
from tests.kg.worlds import Said, make_graph


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
    assert ask_graph(graph, "ASK { wd:Q3 wdt:P31 wd:Q2 }", most=1).yes is True
    assert ask_graph(graph, "ASK { wd:Q3 wdt:P31 wd:Q9 }", most=1).yes is False
    triples = ask_graph(graph, "CONSTRUCT { ?b rdfs:seeAlso ?a } WHERE { ?a wdt:P31 ?b }", most=1)
    assert (triples.columns, triples.more) == (("subject", "predicate", "object"), True)
    assert triples.rows == (("wd:Q2", "rdfs:seeAlso", "wd:Q3"),)
    assert len(ask_graph(graph, "DESCRIBE wd:Q3", most=9).rows) == 3


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
        "SELECT * { ?s ?p ?o FILTER EXISTS { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } } }",
        "SELECT * { { SELECT ?s { SERVICE SILENT ?u { ?s ?p ?o } } } VALUES ?u { <http://127.0.0.1:9/> } }",
        "SELECT * { ?s ?p ?o BIND(EXISTS { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } } AS ?e) }",
        "ASK { OPTIONAL { ?s ?p ?o MINUS { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } } } }",
        "SELECT (MAX(IF(EXISTS { SERVICE <http://127.0.0.1:9/> {} }, 1, 2)) AS ?x) { ?s ?p ?o } GROUP BY ?s",
        "ASK { ?s ?p ?o FILTER EXISTS { ?s ?p ?v FILTER EXISTS { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } } } }",
        "SELECT * FROM <http://127.0.0.1:9/> { ?s ?p ?o }",
        "CONSTRUCT { ?s ?p ?o } FROM NAMED <file:///etc/hostname> { GRAPH ?g { ?s ?p ?o } }",
    ],
)
def test_nothing_is_asked_or_fetched_elsewhere(graph: Graph, query: str) -> None:
    with pytest.raises(UsageError, match="something elsewhere"):
        ask_graph(graph, query, most=5)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("LOAD <http://127.0.0.1:9/>", "not a SPARQL query.*SELECT, ASK, CONSTRUCT or DESCRIBE"),
        ("INSERT DATA { wd:Q1 wdt:P31 wd:Q2 }", "not a SPARQL query"),
        ("SELECT ?x { ?x ", r"not a SPARQL query.*line:1"),
        ("SELECT ?x { ?x foo:bar ?y }", "Unknown namespace prefix : foo.*other prefixes need PREFIX"),
        ("ASK " + "{" * 5000, "not a SPARQL query|nested too deeply"),
        ("", "not a SPARQL query"),
    ],
)
def test_what_is_no_query_is_said(graph: Graph, query: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        ask_graph(graph, query, most=5)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT (<http://x/f>(?s) AS ?b) { ?s ?p ?o }",
        "SELECT ?s { ?s ?p ?o FILTER(!EXISTS { ?s ?p ?v FILTER(<http://x/f>(?v)) }) }",
        "PREFIX x: <http://x/> SELECT ?s { ?s ?p ?o } ORDER BY x:f(?s)",
    ],
)
def test_a_function_that_nobody_knows_is_refused(graph: Graph, query: str) -> None:
    with pytest.raises(UsageError, match=r"a function that is not known here.*found http://x/f"):
        ask_graph(graph, query, most=5)


def test_rows_in_which_nothing_is_bound_are_rows(graph: Graph) -> None:
    found = ask_graph(graph, "SELECT (1/0 AS ?b) { ?s wdt:P31 wd:Q2 }", most=1)
    assert (found.columns, found.rows, found.more) == (("b",), ((None,),), True)
    cast = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT (xsd:integer('7') AS ?b) {}"
    assert ask_graph(graph, cast, most=1).rows == (("7",),)


def test_a_file_is_answered_in_the_words_of_a_graph_and_without_halves_of_characters(tmp_path: Path) -> None:
    file = tmp_path / "x.nt"
    file.write_text('<http://www.wikidata.org/entity/Q2> <http://www.wikidata.org/prop/direct/P1> "a\\uD800b" .\n')
    assert ask_graph(read_triples(file), "SELECT ?s ?p ?o { ?s ?p ?o }", most=1).rows == (
        ("wd:Q2", "wdt:P1", "a\ufffdb"),
    )
