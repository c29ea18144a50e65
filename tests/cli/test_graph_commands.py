"""The commands that look into a graph, as a user runs them."""

import bz2
import gzip
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import zstandard

from culturekit.core.schemas import CANDIDATES, ITEMS
from culturekit.core.tables import read_table
from tests.command_line import culturekit
from tests.kg.exchange.test_sparql import mention
from tests.kg.sparql_server import Answer, Endpoint, as_rdf, serving


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
    (data,) = json.loads(culturekit(*asked[:7], "--hops", "1", "--json").stdout)
    assert [(root["hop"], root["limit"]) for root in data["roots"]] == [(1, 1)], "those of the file count no more"


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


def test_diff_prints_totals_writes_a_table_and_leaves_with_one_where_something_differs(
    small_run: Path, graph: Path, tmp_path: Path
) -> None:
    other, asked = tmp_path / "other", ("kg", "diff", small_run / "candidates", tmp_path / "other")
    culturekit("kg", "extract", "--graph", graph, "--roots", "art", "--hops", "1", "--out", other, ends=0)
    totals = json.loads(culturekit(*asked, "--json", ends=1).stdout)["counts"]
    assert totals["candidate removed"] > 0
    assert f"{totals['differences']:,}  differences" in culturekit(*asked, ends=1).stdout
    written = culturekit(*asked, "--out", tmp_path / "diff", "--json", "--also", "csv", ends=1)
    assert json.loads(written.stdout)["counts"] == totals
    assert pl.read_parquet(tmp_path / "diff/diff.parquet").height == totals["differences"]
    assert (tmp_path / "diff/diff.csv").exists()
    for same in (graph, small_run / "candidates/candidates.parquet"):
        culturekit("kg", "diff", same, same, ends=0)


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


WORLD = [
    {"id": "Q1", "type": "item", "labels": {"en": {"language": "en", "value": "root"}}},
    {"id": "Q2", "type": "item", "claims": {"P279": [mention("Q1")], "P17": [mention("Q155")]}},
]
CONTACT = ("--contact", "test@example.org")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving(as_rdf(WORLD)) as running:
        yield running


@pytest.fixture
def concept(tmp_path: Path) -> Path:
    path = tmp_path / "any.yaml"
    path.write_text("{concept: any, hops: 2, roots: [{qid: Q1, label: root}]}")
    return path


def test_a_cut_run_goes_on_from_what_was_answered(endpoint: Endpoint, concept: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("kg", "extract", "--source", "sparql", "--endpoint", endpoint.url, "--roots", concept, "--out", out)
    endpoint.faults = [None] * 4 + [Answer(400, (), b"no")]
    assert "the service refused (HTTP 400)" in culturekit(*command, *CONTACT, ends=3).stderr
    assert not (out / "candidates.parquet").exists()
    asked = list(endpoint.queries)
    assert json.loads(culturekit(*command, *CONTACT, "--json", ends=0).stdout)["counts"]["candidates"] == 1
    assert not set(asked[:4]) & set(endpoint.queries[5:]), "no answer is asked for twice"
    assert endpoint.queries[5] == asked[4]
    assert pl.read_parquet(out / "candidates.parquet")["path"].to_list() == [["Q1", "Q2"]]
    manifest = (out / "manifest.json").read_text()
    assert endpoint.url in manifest
    assert "test@example.org" not in manifest, "who asked does not change the answer"
    before = len(endpoint.queries)
    assert "reused" in culturekit(*command, *CONTACT).stdout
    assert len(endpoint.queries) == before


def test_a_cache_serves_other_runs(endpoint: Endpoint, concept: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        culturekit(
            "kg", "extract", "--source", "sparql", "--endpoint", endpoint.url, "--roots", concept,
            "--cache", tmp_path / "replies", "--out", tmp_path / name, *CONTACT, ends=0,
        )  # fmt: skip
    assert len(set(endpoint.queries)) == len(endpoint.queries)
    tables = [(tmp_path / name / "candidates.parquet").read_bytes() for name in ("one", "two")]
    assert tables[0] == tables[1]


def test_what_does_not_go_together_is_refused_unasked(endpoint: Endpoint, concept: Path, tmp_path: Path) -> None:
    sparql = ("--source", "sparql", "--endpoint", endpoint.url)
    for words, message in (
        (sparql, "--contact"),
        (("--source", "sparql", *CONTACT), "--endpoint"),
        ((*sparql, *CONTACT, "--graph", tmp_path), "--graph goes with"),
        ((), "nothing to walk"),
        (("--graph", tmp_path, *CONTACT), "go with --source sparql"),
        (("--source", "sparql", "--endpoint", "http://192.168.1.1/sparql", *CONTACT), "not on the public internet"),
        (("--source", "sparql", "--endpoint", "file:///etc/passwd", *CONTACT), "not a URL"),
    ):
        done = culturekit("kg", "extract", "--roots", concept, "--out", tmp_path / "out", *words, ends=2)
        assert message in done.stderr
    assert endpoint.queries == []


DUMP = b"[\n" + b",\n".join(json.dumps({"id": f"Q{n}", "type": "item"}).encode() for n in range(1, 40)) + b"\n]\n"


def run(*arguments: str, given: bytes = b"", cwd: Path) -> "subprocess.CompletedProcess[str]":
    return culturekit("kg", "ingest", *arguments, given=given, cwd=cwd)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, zstandard.ZstdCompressor().compress])
def test_standard_input_may_be_compressed(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    done = run("-", "--out", "graph", given=pack(DUMP), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read_table(tmp_path / "graph/items.parquet", ITEMS).height == 39


ROOTS = """
concept: food
hops: 2
roots: [{qid: Q1, label: food}]
countries: [BR]
"""


def test_truthy_triples_are_told_from_json_and_what_they_lack_is_said(tmp_path: Path) -> None:
    entity, direct = "http://www.wikidata.org/entity/Q", "http://www.wikidata.org/prop/direct/P"
    triples = [(1, 279, 3), (2, 31, 1), (2, 495, 155)]
    lines = "".join(f"<{entity}{one}> <{direct}{name}> <{entity}{other}> .\n" for one, name, other in triples)
    done = run("-", "--out", "graph", given=gzip.compress(lines.encode()), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "triples say nothing of ranks, qualifiers, sitelinks, titles" in done.stderr
    (tmp_path / "food.yaml").write_text(ROOTS)
    extract = ("kg", "extract", "--graph", "graph", "--roots", "food.yaml", "--out", "candidates")
    done = culturekit(*extract, cwd=tmp_path)
    assert "ranks: not-deprecated is as truthy" in done.stderr
    assert read_table(tmp_path / "candidates/candidates.parquet", CANDIDATES)["qid"].to_list() == ["Q2"]
    (tmp_path / "food.yaml").write_text(ROOTS + "ended: drop")
    assert "does not say which statements have ended" in culturekit(*extract, "--replace", cwd=tmp_path, ends=2).stderr


def test_standard_input_is_read_anew_every_time(tmp_path: Path) -> None:
    run("-", "--out", "graph", given=DUMP, cwd=tmp_path)
    other = DUMP.replace(b"Q7", b"Q7000")
    assert run("-", "--out", "graph", given=other, cwd=tmp_path).returncode == 2
    done = run("-", "--out", "graph", "--replace", given=other, cwd=tmp_path)
    assert "built" in done.stdout
    assert "Q7000" in read_table(tmp_path / "graph/items.parquet", ITEMS)["qid"].to_list()


def test_a_cut_stream_and_a_dump_without_its_closing_bracket_publish_nothing(tmp_path: Path) -> None:
    done = run("-", "--out", "graph", given=gzip.compress(DUMP)[:-5], cwd=tmp_path)
    assert done.returncode == 4
    assert "the file ends inside the member" in done.stderr
    assert not (tmp_path / "graph").exists()
    cut = DUMP.rstrip().removesuffix(b"]")
    (tmp_path / "d.json.gz").write_bytes(gzip.compress(cut))
    done = run("d.json.gz", "--out", "graph", cwd=tmp_path)
    assert done.returncode == 4
    assert f"its end at byte {len(cut):,} of the JSON, in member 0" in done.stderr
    assert not (tmp_path / "graph").exists()


@pytest.mark.parametrize(("name", "pack", "warns"), [
    ("d.json", bytes, True), ("d.json.gz", gzip.compress, False),
    ("d.json.zst", zstandard.ZstdCompressor(write_checksum=False).compress, True),
    ("d.json.zst", zstandard.ZstdCompressor(write_checksum=True).compress, False),
])  # fmt: skip
def test_a_file_that_cannot_tell_if_it_is_whole_warns(name: str, pack: object, warns: bool, tmp_path: Path) -> None:
    assert callable(pack)
    (tmp_path / name).write_bytes(pack(DUMP))
    done = run(name, "--out", "graph", cwd=tmp_path)
    assert done.returncode == 0
    assert ("--sha256" in done.stderr) == warns


@pytest.mark.parametrize(("words", "message"), [
    (("-", "d.json"), "standard input"), (("-", "--sha256", "0" * 64), "standard input"),
    (("d.json", "--sha256", "abc"), "expected 64 hexadecimal digits, found 'abc'"),
])  # fmt: skip
def test_standard_input_stands_alone_and_a_checksum_is_one(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "d.json").write_bytes(DUMP)
    done = run(*words, "--out", "graph", cwd=tmp_path)
    assert (done.returncode, message in done.stderr) == (2, True)
