"""An endpoint that is busy, broken, moved or not what it says, and a client that stays polite."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rdflib import RDFS, Graph, Literal, URIRef

from culturekit.core.errors import UpstreamUnavailable, UsageError
from culturekit.kg.exchange.sparql import SparqlClient
from tests.builders.answering import slept
from tests.kg.sparql_server import Answer, Endpoint, serving

QUERY = "SELECT ?label WHERE { ?item <http://www.w3.org/2000/01/rdf-schema#label> ?label }"
CONTACT = "mail:somebody@example.org"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    graph = Graph()
    graph.add((URIRef("http://www.wikidata.org/entity/Q1"), RDFS.label, Literal("univers", lang="fr")))
    with serving(graph) as running:
        yield running


def client(endpoint: Endpoint, folder: Path, waits: list[float]) -> SparqlClient:
    return SparqlClient(endpoint.url, CONTACT, folder / "replies", timeout=20, pace=slept(1e6, waits))


def kept(folder: Path) -> list[Path]:
    return list((folder / "replies").rglob("*.json"))


def test_an_answer_is_kept_and_not_asked_for_again(endpoint: Endpoint, tmp_path: Path) -> None:
    for _ in range(2):
        with client(endpoint, tmp_path, []) as asking:
            rows = asking.select(QUERY)
            assert [(row["label"].value, row["label"].language) for row in rows] == [("univers", "fr")]
    assert len(endpoint.queries) == 1
    assert CONTACT in endpoint.agents[0]
    assert json.loads(kept(tmp_path)[0].read_bytes())[0] == [endpoint.url, QUERY]


def test_a_damaged_kept_answer_is_asked_for_again(endpoint: Endpoint, tmp_path: Path) -> None:
    with client(endpoint, tmp_path, []) as asking:
        asking.select(QUERY)
        (whole,) = kept(tmp_path)
        whole.write_bytes(whole.read_bytes()[:-20])
        assert len(asking.select(QUERY)) == 1
    assert len(endpoint.queries) == 2


@pytest.mark.parametrize(
    "fault",
    [Answer(500, (), b"java.util.concurrent.TimeoutException"), Answer(200, (), b'{"head": {}, "boolean": true}')],
)
def test_what_passes_is_tried_again_and_what_does_not_leaves_nothing_behind(
    endpoint: Endpoint, tmp_path: Path, fault: Answer
) -> None:
    endpoint.faults = [fault] * 5
    with client(endpoint, tmp_path, []) as asking:
        with pytest.raises(UpstreamUnavailable, match=r"in 5 tries.*goes on from there"):
            asking.select(QUERY)
        assert kept(tmp_path) == []
        endpoint.faults = [fault, fault]
        assert len(asking.select(QUERY)) == 1


def test_a_move_on_the_same_machine_is_followed(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.faults = [Answer(307, (("Location", "/elsewhere"),))]
    with client(endpoint, tmp_path, []) as asking:
        assert len(asking.select(QUERY)) == 1


@pytest.mark.parametrize("contact", ["", "me", "@", "a b@example.org", "me@example.org\r\nX-Evil: 1", "ü@example.org"])
def test_a_contact_is_required(contact: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--contact"):
        SparqlClient("https://example.org/sparql", contact, tmp_path)
