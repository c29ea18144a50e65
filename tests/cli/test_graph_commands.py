"""The commands that look into a graph, as a user runs them."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import culturekit


@pytest.fixture
def graph(small_run: Path) -> Path:
    return small_run / "graph"


def test_explain_tells_people_and_machines(graph: Path) -> None:
    answer = culturekit("kg", "explain", "Q2065278", "--graph", graph, "--roots", "cuisine", "--paths", "1", ends=0)
    assert "is an artifact of cuisine" in answer.stdout
    assert "of which 1 are shown" in answer.stdout
    asked = ("kg", "explain", "Q2065278", "--graph", graph, "--roots", "cuisine", "--roots", "art", "--json")
    verdicts = [(each["concept"], each["verdict"]) for each in json.loads(culturekit(*asked).stdout)]
    assert verdicts == [("cuisine", "in"), ("art", "out")]


def test_hops_of_the_command_line_go_over_those_of_the_file(graph: Path) -> None:
    asked = ("kg", "explain", "Q2065278", "--graph", graph, "--roots", "cuisine", "--hops", "1", "--json")
    (data,) = json.loads(culturekit(*asked).stdout)
    assert [(root["hop"], root["limit"]) for root in data["roots"]] == [(1, 1)]


def test_preview_agrees_with_what_extract_finds(small_run: Path, graph: Path) -> None:
    done = culturekit("kg", "preview", "--graph", graph, "--roots", "cuisine", "--roots", "art", "--json")
    counted = {each["concept"]: each["candidates"] for each in json.loads(done.stdout)}
    assert counted == {"cuisine": 340, "art": 69}
    answer = culturekit("kg", "preview", "--graph", graph, "--roots", "art", "--samples", "2", "--seed", "3")
    assert "art: 69 candidates" in answer.stdout
    assert "2 of 9, seed 3:" in answer.stdout
    assert "no price given, so none is said" in answer.stdout
    priced = ("--price-per-million-input", "1", "--price-per-million-output", "2")
    assert "at the prices given" in culturekit("kg", "preview", "--graph", graph, "--roots", "art", *priced).stdout


def test_diff_prints_totals_and_writes_a_table(small_run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    candidates = small_run / "candidates"
    culturekit("kg", "extract", "--graph", small_run / "graph", "--roots", "art", "--hops", "1", "--out", other, ends=0)
    totals = json.loads(culturekit("kg", "diff", candidates, other, "--json").stdout)["counts"]
    assert totals["candidate removed"] > 0
    assert f"{totals['differences']:,}  differences" in culturekit("kg", "diff", candidates, other).stdout
    written = culturekit("kg", "diff", candidates, other, "--out", tmp_path / "diff", "--json", "--also", "csv")
    assert json.loads(written.stdout)["counts"] == totals
    assert pl.read_parquet(tmp_path / "diff/diff.parquet").height == totals["differences"]
    assert (tmp_path / "diff/diff.csv").exists()


def test_paths_are_drawn(graph: Path, tmp_path: Path) -> None:
    asked = ("kg", "explain", "Q2065278", "--graph", graph, "--roots", "cuisine", "--draw")
    for name in ("paths.svg", "paths.png"):
        done = culturekit(*asked, tmp_path / name, ends=0)
        assert "is an artifact of cuisine" in done.stdout, "the picture comes with the words"
    assert "Pão de queijo" in (tmp_path / "paths.svg").read_text(encoding="utf-8")
    assert (tmp_path / "paths.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_exported_is_imported_queried_and_walked(graph: Path, tmp_path: Path) -> None:
    asked = ("kg", "export", "--graph", graph, "--around", "Q746549", "--hops", "2", "--format")
    assert culturekit(*asked, "graphml", "--out", tmp_path / "dish.graphml").returncode == 0
    culturekit("kg", "import", tmp_path / "dish.graphml", "--out", tmp_path / "graph", ends=0)
    answer = culturekit("kg", "explain", "Q2065278", "--graph", tmp_path / "graph", "--roots", "cuisine")
    assert "Q746549 (dish) at hop 1 of 4" in answer.stdout
    assert "[dish.graphml" in answer.stdout
    query = "SELECT ?name { wd:Q2065278 rdfs:label ?name }"
    around = ("--graph", tmp_path / "graph", "--around", "Q746549")
    assert culturekit("kg", "query", query, *around).stdout.split("\n")[:2] == ["name", "Pão de queijo"]
    (tmp_path / "q.rq").write_text("ASK { wd:Q2065278 wdt:P31|wdt:P279 wd:Q746549 }", encoding="utf-8")
    assert culturekit("kg", "query", f"@{tmp_path / 'q.rq'}", *around).stdout == "yes\n"
    assert culturekit(*asked, "turtle", "--out", tmp_path / "dish.ttl").returncode == 0
    every = culturekit("kg", "query", "SELECT * { ?s ?p ?o }", "--file", tmp_path / "dish.ttl", "--rows", "2")
    assert "more than these 2 rows" in every.stdout
    both = json.loads(culturekit("kg", "query", query, *around, "--json").stdout)
    assert both["rows"] == [["Pão de queijo"]]


def test_stats_and_export(graph: Path, tmp_path: Path) -> None:
    assert json.loads(culturekit("kg", "stats", "--graph", graph, "--json").stdout)["items"] == 998
    assert "labels that fall back to mul" in culturekit("kg", "stats", "--graph", graph).stdout
    asked = ("kg", "export", "--graph", graph, "--around", "Q746549", "--out")
    done = culturekit(*asked, tmp_path / "dish.nt", "--most", "5")
    assert "items left out, more with --most" in done.stdout
    assert "entity/Q746549>" in (tmp_path / "dish.nt").read_text(encoding="utf-8")
    for form in ("turtle", "json-ld", "graphml", "node-link"):
        done = culturekit(*asked, tmp_path / form, "--format", form, "--json")
        assert json.loads(done.stdout)["format"] == form
        assert (tmp_path / form).stat().st_size > 10_000


@pytest.mark.parametrize(("arguments", "message"), [
    (("explain", "42", "--graph", "GRAPH", "--roots", "art"), "a QID such as Q42"),
    (("explain", "Q42", "--graph", "nowhere", "--roots", "art"), "not a graph store"),
    (("stats", "--graph", "nowhere"), "not a graph store"),
    (("preview", "--graph", "GRAPH", "--roots", "art", "--price-per-million-input", "1"), "both prices or none"),
    (("preview", "--graph", "GRAPH", "--roots", "art", "--llm", "rules", "--price-per-million-input", "1",
     "--price-per-million-output", "1"), "prices are stated, or those of a judge"),
    (("diff", "GRAPH", "GRAPH", "--wait"), "expected --out as well"),
    (("diff", "GRAPH", "nowhere"), "found nothing"),
    (("export", "--graph", "GRAPH", "--around", "Q42", "--out", "x"), "never mentions the item"),
    (("export", "--graph", "GRAPH", "--around", "Q746549", "--out", "no/x"), "no such folder"),
    (("import", "x.txt", "--out", "y"), "no format has this suffix"),
    (("import", "x.nt", "--out", "y"), "there is no such file"),
    (("query", "ASK {}", "--graph", "GRAPH"), "--graph and --around, or --file"),
    (("query", "ASK {}", "--graph", "GRAPH", "--around", "Q746549", "--file", "x.nt"), "nothing to ask"),
    (("query", "ASK {}", "--file", "x.nt", "--hops", "2"), "a file of triples is asked whole"),
    (("query", "ASK {", "--graph", "GRAPH", "--around", "Q746549"), "not a SPARQL query"),
    (("query", "@no.rq", "--graph", "GRAPH", "--around", "Q746549"), "no.rq: there is no such file"),
    (("query", "ASK {}", "--file", "x.json"), "expected .nt or .ttl or .jsonld"),
    (("entity", "42", "--contact", "me@example.org"), "a QID such as Q42"),
    (("entity", "Q42", "--contact", "me"), "--contact"),
    (("explain", "Q2065278", "--graph", "GRAPH", "--roots", "cuisine", "--draw", "x.pdf"), ".svg or .png"),
    (("explain", "Q2065278", "--graph", "GRAPH", "--roots", "cuisine", "--draw", "no/x.svg"), "no such folder"),
    (("explain", "Q2065278", "--graph", "GRAPH", "--roots", "art", "--draw", "x.svg"), "no path to draw"),
    (("explain", "Q3", "--graph", "GRAPH", "--roots", "art", "--roots", "cuisine", "--draw", "x.svg"),
     "a picture shows one concept"),
])  # fmt: skip
def test_mistakes_are_said_in_words(graph: Path, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = culturekit("kg", *(str(graph) if word == "GRAPH" else word for word in arguments), cwd=tmp_path, ends=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_labels_that_steer_a_terminal_are_shown(tmp_path: Path) -> None:
    label = "red\x1b[31m\u202ebackwards\nnext"
    nodes = [{"id": f"Q{number}", "label": label} for number in (1, 2, 3)]
    steps = (("Q2", "P279", "Q1"), ("Q3", "P31", "Q2"))
    edges = [{"source": start, "target": end, "key": 0, "property": name} for start, name, end in steps]
    world = {"directed": True, "multigraph": True, "graph": {}, "nodes": nodes, "edges": edges}
    (tmp_path / "w.json").write_text(json.dumps(world), encoding="utf-8")
    folder = tmp_path / "graph"
    assert culturekit("kg", "import", tmp_path / "w.json", "--out", folder).returncode == 0
    root = "{qid: Q1, label: one, subconcept: clothing}"
    roots = f"concept: art\nhops: 3\nroots: [{root}]\ncountries: [BR]\n"
    (tmp_path / "roots.yaml").write_text(roots, encoding="utf-8")
    asked = ("--graph", folder, "--roots", tmp_path / "roots.yaml")
    around = ("--graph", folder, "--around", "Q2")
    for words in (
        ("explain", "Q3", *asked), ("preview", *asked), ("query", "SELECT ?n { wd:Q3 rdfs:label ?n }", *around),
    ):  # fmt: skip
        done = culturekit("kg", *words, ends=0)
        assert r"red\x1b[31m\u202ebackwards" in done.stdout, words[0]
        assert "\x1b" not in done.stdout
        assert "\u202e" not in done.stdout


def test_a_query_on_a_file_with_halves_of_characters_is_shown(tmp_path: Path) -> None:
    (tmp_path / "x.nt").write_text('<http://x/a> <http://x/b> "a\\uD800" .\n')
    done = culturekit("kg", "query", "SELECT ?o { ?s ?p ?o }", "--file", tmp_path / "x.nt")
    assert (done.returncode, done.stdout) == (0, "o\na\ufffd\n"), done.stderr


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_what_cannot_be_drawn_is_told_all_the_same(graph: Path, tmp_path: Path, form: tuple[str, ...]) -> None:
    asked = ("kg", "explain", "Q2065278", "--graph", graph, "--roots", "art")
    done = culturekit(*asked, "--draw", tmp_path / "x.svg", *form)
    assert (done.returncode, done.stdout) == (2, culturekit(*asked, *form).stdout)
    assert "no path to draw" in done.stderr
