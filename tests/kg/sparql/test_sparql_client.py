"""An endpoint that is busy, broken, moved or not what it says, and a client that stays polite."""

import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from rdflib import RDFS, Graph, Literal, URIRef

from culturekit.errors import UpstreamUnavailable, UsageError
from culturekit.kg.sparql.sparql_client import SparqlClient
from culturekit.kg.web.pinned_connection import address_of, check_url, connect_to
from tests.builders.answering import slept
from tests.kg.sparql_server import Answer, Endpoint, serving
from tests.llm.server.wire import HEADER, dripping

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


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("dated", [False, True])
def test_retry_after_is_obeyed(endpoint: Endpoint, tmp_path: Path, status: int, dated: bool) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=300), usegmt=True)
    endpoint.faults = [Answer(status, (("Retry-After", later if dated else "300"),))]
    pauses: list[float] = []
    with client(endpoint, tmp_path, pauses) as asking:
        assert len(asking.select(QUERY)) == 1
    (longest,) = [pause for pause in pauses if pause >= 1]
    assert 200 <= longest <= 300, "a date is nearer by the time that the reply took"


@pytest.mark.parametrize(
    "fault",
    [
        Answer(500, (), b"java.util.concurrent.TimeoutException"),
        Answer(502),
        Answer(503),
        Answer(hang_up=True),
        Answer(200, (), b'{"head": {"vars": ["label"]}, "results": {"bindings": [{"label"'),
        Answer(200, (), b"<html>busy</html>"),
        Answer(200, (), b'{"head": {}, "boolean": true}'),
    ],
)
def test_what_passes_is_tried_again_with_longer_pauses(endpoint: Endpoint, tmp_path: Path, fault: Answer) -> None:
    endpoint.faults = [fault, fault]
    pauses: list[float] = []
    with client(endpoint, tmp_path, pauses) as asking:
        assert len(asking.select(QUERY)) == 1
    assert [pause for pause in pauses if pause >= 0.5] == [1, 2]


def test_what_does_not_pass_is_said_and_leaves_nothing_behind(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.faults = [Answer(500, (), b"query timed out")] * 5
    with client(endpoint, tmp_path, []) as asking:
        with pytest.raises(UpstreamUnavailable, match=r"in 5 tries.*query timed out.*goes on from there"):
            asking.select(QUERY)
        endpoint.faults = [Answer(429, (("Retry-After", "7200"),))]
        with pytest.raises(UpstreamUnavailable, match="a request to wait 7,200 s"):
            asking.select(QUERY)
        endpoint.faults = [Answer(400, (), b"Lexical error at line 3")]
        with pytest.raises(UpstreamUnavailable, match=r"refused \(HTTP 400\).*Lexical error"):
            asking.select(QUERY)
    assert kept(tmp_path) == []


def test_a_reply_without_end_is_cut(endpoint: Endpoint, tmp_path: Path) -> None:
    with client(endpoint, tmp_path, []) as asking, pytest.raises(UpstreamUnavailable, match="too large"):
        asking.source.largest = 50
        asking.select(QUERY)


def test_a_move_on_the_same_machine_is_followed(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.faults = [Answer(307, (("Location", "/elsewhere"),))]
    with client(endpoint, tmp_path, []) as asking:
        assert len(asking.select(QUERY)) == 1
    endpoint.faults = [Answer(308, (("Location", "/again"),))] * 9
    with client(endpoint, tmp_path, []) as asking, pytest.raises(UpstreamUnavailable, match="again and again"):
        asking.select(QUERY + "#")


@pytest.mark.parametrize(
    "place",
    [
        "http://10.0.0.1/",
        "http://169.254.169.254/latest",
        "http://[fd00::1]/",
        "http://0.0.0.0/",
        "http://192.168.1.1/",
    ],
)
def test_a_move_to_a_private_address_is_refused(endpoint: Endpoint, tmp_path: Path, place: str) -> None:
    endpoint.faults = [Answer(302, (("Location", place),))]
    with client(endpoint, tmp_path, []) as asking, pytest.raises(UsageError, match="not on the public internet"):
        asking.select(QUERY)
    assert len(endpoint.queries) == 1


@pytest.mark.parametrize("place", ["", "file:///etc/passwd", "ftp://example.org/"])
def test_a_move_to_nowhere_is_refused(endpoint: Endpoint, tmp_path: Path, place: str) -> None:
    endpoint.faults = [Answer(301, (("Location", place),))]
    with client(endpoint, tmp_path, []) as asking, pytest.raises((UsageError, UpstreamUnavailable)):
        asking.select(QUERY)


@pytest.mark.parametrize(
    "answer",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.9", "169.254.0.1", "100.64.0.1", "0.0.0.0", "::1", "fe80::1"]
    + ["fd12::1", "::ffff:10.0.0.1", "224.0.0.1", "2002:0a00:0001::1"],
)
def test_a_public_name_for_a_private_address_is_refused(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    family = socket.AF_INET6 if ":" in answer else socket.AF_INET
    found = [(family, socket.SOCK_STREAM, 6, "", (answer, 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(UsageError, match="not on the public internet"):
        address_of(check_url("https://example.org/sparql"), may_be_here=True)


def test_a_public_address_is_what_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert address_of(check_url("https://example.org/sparql"), may_be_here=False) == ("93.184.216.34", 443)
    connection = connect_to(check_url("https://example.org/x"), 5, may_be_here=False)
    assert connection.pinned == ("93.184.216.34", 443)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_this_machine_is_asked_only_where_the_users_own_url_names_it(host: str) -> None:
    parts = check_url(f"http://{host}:8080/sparql")
    assert address_of(parts, may_be_here=True)[1] == 8080
    with pytest.raises(UsageError, match="localhost"):
        address_of(parts, may_be_here=False)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "example.org/sparql",
        "http://",
        "http://me:secret@example.org/",
        "http://example.org:99999/",
    ]
    + ["http://example.org/a b", "http://example.org/\r\nX: y", "http://example.org/#x", "http://[::1/", "file:///x"],
)
def test_what_is_no_url_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        SparqlClient(url, CONTACT, tmp_path)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("contact", ["", "me", "@", "a b@example.org", "me@example.org\r\nX-Evil: 1", "ü@example.org"])
def test_a_contact_is_required(contact: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--contact"):
        SparqlClient("https://example.org/sparql", contact, tmp_path)


def test_a_host_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nothing)
    with (
        SparqlClient("https://nowhere.example/sparql", CONTACT, tmp_path, pace=slept(1e6, [])) as asking,
        pytest.raises(UpstreamUnavailable, match="no such host"),
    ):
        asking.select(QUERY)


@pytest.mark.parametrize("begin", [HEADER, HEADER + b"application/sparql-results+json\r\n\r\n"])
def test_an_endpoint_that_sends_a_byte_now_and_then_is_left(tmp_path: Path, begin: bytes) -> None:
    with dripping(begin) as url, SparqlClient(url, "me@example.org", tmp_path, pace=slept(1e6, [])) as client:
        client.source.longest = 0.2
        with pytest.raises(UpstreamUnavailable, match=r"timed out|too long as a whole"):
            client.select("SELECT * {}")
