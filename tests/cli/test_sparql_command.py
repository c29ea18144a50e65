"""`kg extract --source sparql`, from the command line to a server on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import culturekit
from tests.kg.exchange.test_sparql import mention
from tests.kg.sparql_server import Answer, Endpoint, as_rdf, serving

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
