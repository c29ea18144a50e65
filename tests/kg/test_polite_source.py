"""Sources and single items on loopback servers that may lie."""

import json
import re
import socket
import threading
from concurrent.futures import CancelledError
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from culturekit.core.errors import UpstreamUnavailable, UsageError
from culturekit.kg import polite_source
from culturekit.kg.dump.entities import Item, decode
from culturekit.kg.live_entity import live_entity, read_entity
from culturekit.kg.polite_source import (
    _AT_ONCE,
    _LONGEST_WAIT,
    _MAX_BYTES,
    Pace,
    PoliteSource,
    SharedPace,
    address_of,
    check_url,
    connect_to,
)
from culturekit.llm.timed_socket import PinnedConnection
from tests.builders.answering import Said, answering, slept
from tests.command_line import culturekit
from tests.llm.server.wire import HEADER, dripping

GOOD = Said(body=b'{"a": 1}')


def source(url: str, waits: list[float], **secrets: str) -> PoliteSource:
    told = {name.replace("_", "-"): (lambda value=value: value) for name, value in secrets.items()}
    return PoliteSource(url, "me@example.org", slept(1e6, waits), secrets=told)


def turns(*replies: Said) -> object:
    waiting = list(replies)
    return lambda path: waiting.pop(0) if len(waiting) > 1 else waiting[0]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_as_long_as_the_server_says(status: int) -> None:
    waits: list[float] = []
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=300), usegmt=True)
    replies = (
        Said(status, headers={"Retry-After": "7"}), Said(status), Said(status, headers={"Retry-After": date}), GOOD,
    )  # fmt: skip
    with answering(turns(*replies)) as server:  # type: ignore[arg-type]
        assert source(server.url, waits).ask("x", dict) == {"a": 1}
    first, second, third = [wait for wait in waits if wait >= 1]
    assert (first, second) == (7.0, 2.0)
    assert 200 <= third <= 300, "a date is nearer by the time that the replies took"


def test_who_asks_is_said_and_questions_keep_their_pace() -> None:
    waits = list[float]()
    with answering(lambda path: GOOD) as server:
        slow = PoliteSource(server.url, "me@example.org", slept(4.0, waits))
        for _ in range(3):
            slow.ask("x", dict)
    assert waits == [0.25, 0.25]
    assert re.fullmatch(r"culturekit/.*\(me@example\.org\).*", server.asked[0][1]["user-agent"])


def test_a_long_wait_is_not_waited_out() -> None:
    waits: list[float] = []
    with (
        answering(lambda path: Said(429, headers={"Retry-After": "90000"})) as server,
        pytest.raises(UpstreamUnavailable, match="90,000 s"),
    ):
        source(server.url, waits).ask("x", dict)
    assert waits == []


@pytest.mark.parametrize(
    "said",
    [
        Said(body=b"<html>log in</html>", headers={"Content-Type": "text/html"}),
        Said(body=b'{"a": '),
        Said(body=b"\xff\xfe"),
        Said(body=b"[" * 100_000),
        Said(body=b"[1, 2]"),
        Said(body=b'{"a": 1}', length=99),
    ],
    ids=["a page", "cut", "not UTF-8", "deep", "another shape", "shorter than it says"],
)
def test_a_hostile_body_is_an_error_and_never_an_answer(said: Said) -> None:
    with answering(lambda path: said) as server, pytest.raises(UpstreamUnavailable, match="in 5 tries"):
        source(server.url, []).ask("x", dict[str, int])
    assert len(server.asked) == 5


def test_a_reply_without_end_is_cut_off() -> None:
    with (
        answering(lambda path: Said(body=b" " * (_MAX_BYTES + 10))) as server,
        pytest.raises(UpstreamUnavailable, match="too large"),
    ):
        source(server.url, []).ask("x", dict)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_is_not_repeated_and_what_is_not_known_may_have_an_answer(status: int) -> None:
    with answering(lambda path: Said(status, b'{"detail": "no"}')) as server:
        with pytest.raises(UpstreamUnavailable, match=f"HTTP {status}"):
            source(server.url, []).ask("x", dict)
        assert len(server.asked) == 1
        if status == 404:
            assert source(server.url, []).ask("x", dict, missing={"none": 1}) == {"none": 1}


PRIVATE = ("10.0.0.1/", "169.254.169.254/latest/", "[::ffff:192.168.0.1]/", "127.0.0.1:9/")
NO_PAGE = ("file:///etc/passwd", "ftp://example.org/", "http://user:word@example.org/")


@pytest.mark.parametrize(
    ("to", "why"),
    [*((f"http://{to}", "not on the public internet") for to in PRIVATE), *((to, None) for to in NO_PAGE)],
)
def test_a_redirect_to_a_private_address_or_to_what_is_no_page_is_refused(to: str, why: str | None) -> None:
    with (
        answering(lambda path: Said(302, headers={"Location": to})) as server,
        pytest.raises(UsageError, match=why),
    ):
        source(server.url, []).ask("x", dict)


def test_a_redirect_on_the_same_server_is_followed_and_a_circle_is_not() -> None:
    with answering(lambda path: GOOD if path == "/new" else Said(301, headers={"Location": "/new"})) as server:
        assert source(server.url, []).ask("old", dict) == {"a": 1}
    with (
        answering(lambda path: Said(302, headers={"Location": "/again"})) as server,
        pytest.raises(UpstreamUnavailable, match="again and again"),
    ):
        source(server.url, []).ask("x", dict)


@pytest.mark.parametrize(
    "begin", [HEADER, HEADER + b"application/json\r\n\r\n", HEADER + b"application/json\r\nConnection: close\r\n\r\n"]
)
def test_a_server_that_sends_a_byte_now_and_then_is_cut_off(begin: bytes) -> None:
    with dripping(begin) as url:
        asked = source(url, [])
        asked.longest = 0.2
        with pytest.raises(UpstreamUnavailable, match=r"timed out|too long as a whole"):
            asked.ask("x", dict)


def test_https_never_becomes_http() -> None:
    with pytest.raises(UpstreamUnavailable, match="nowhere safe"):
        polite_source._moved_to("https://example.org/sparql", "http://example.org/sparql")
    assert polite_source._moved_to("http://example.org/a", "https://example.org/b") == "https://example.org/b"


def test_three_questions_are_asked_at_once_and_no_more() -> None:
    together, lock = [0, 0], threading.Lock()
    three = threading.Barrier(_AT_ONCE, timeout=30)

    def answer(path: str) -> Said:
        with lock:
            together[0] += 1
            together[1] = max(together)
        if path in {"/0", "/1", "/2"}:
            three.wait()
        with lock:
            together[0] -= 1
        return Said(body=f'{{"a": {path[1:]}}}'.encode())

    with answering(answer) as server, PoliteSource(server.url, "me@example.org", Pace(1e6)) as source:
        found = list(source.each(lambda n: source.ask(str(n), dict[str, int])["a"], range(40)))
    assert found == list(range(40))
    assert together == [0, _AT_ONCE], "the barrier opens only when all three are there"


def test_when_one_is_told_to_wait_all_wait() -> None:
    waits: list[float] = []
    pace = slept(1e6, waits)
    with answering(turns(Said(429, headers={"Retry-After": "9"}), GOOD)) as server:  # type: ignore[arg-type]
        one, other = (PoliteSource(server.url, "me@example.org", pace) for _ in range(2))
        pace.hold(30)
        one.ask("x", dict)
        other.ask("x", dict)
    assert [wait for wait in waits if wait >= 1] == [pytest.approx(30), pytest.approx(9)]


def test_processes_keep_the_pace_of_wikimedia_together(tmp_path: Path) -> None:
    one, other = (SharedPace(200 / 60, lambda: tmp_path / "cache") for _ in range(2))
    one.clock = other.clock = lambda: 1000.0
    assert one._book() == 0
    assert other._book() == pytest.approx(0.3)
    one.hold(30)
    assert other._book() == pytest.approx(30)
    one.clock = other.clock = lambda: 500.0
    assert other._book() <= _LONGEST_WAIT, "a clock that was set back is not waited for"
    stop = threading.Event()
    stop.set()
    with ExitStack() as held:
        assert all(one._placed(held) for _ in range(_AT_ONCE))
        with pytest.raises(CancelledError), other.turn(stop):
            raise AssertionError("there was no place")
    with ExitStack() as held:
        assert other._placed(held)
    (tmp_path / "file").touch()
    alone = SharedPace(200 / 60, lambda: tmp_path / "file" / "none")
    with alone.turn(threading.Event()):
        assert alone._book() > 0, "where nothing can be written, each process keeps it alone"


def test_what_goes_wrong_ends_the_asking() -> None:
    with answering(lambda path: Said(403 if path == "/0" else 200)) as server:
        source = PoliteSource(server.url, "me@example.org", Pace(0.02))
        with pytest.raises(UpstreamUnavailable, match="HTTP 403"):
            list(source.each(lambda n: source.ask(str(n), dict), range(100)))
        assert len(server.asked) == 1, "nobody waits for a turn any more"


def test_all_of_wikimedia_is_asked_at_one_pace_of_200_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hosts are stood for by loopback: what is looked at is when their turns come, on a clock of the test."""
    waits: list[float] = []
    assert polite_source._OF_WIKIMEDIA.per_second == pytest.approx(200 / 60)
    monkeypatch.setattr(polite_source, "_OF_WIKIMEDIA", slept(200 / 60, waits))
    hosts = ["wikimedia.org", "www.wikidata.org", "query.wikidata.org", "hi.wikipedia.org", "upload.wikimedia.org"]
    with answering(lambda path: GOOD) as server:
        address = ("127.0.0.1", int(server.url.rpartition(":")[2]))

        def connect(parts: object, timeout: float, *, until: float, may_be_here: bool) -> PinnedConnection:
            del parts, may_be_here
            return PinnedConnection("127.0.0.1", address, secure=False, until=until, timeout=timeout)

        monkeypatch.setattr(polite_source, "connect_to", connect)
        for host in hosts:
            PoliteSource(f"https://{host}/x", "me@example.org", Pace(1e6)).ask("y", dict)
        assert waits == [pytest.approx(0.3)] * 4
        PoliteSource("https://notwikipedia.org/x", "me@example.org", Pace(1e6)).ask("y", dict)
        assert len(waits) == 4
    assert len(server.asked) == 6


def test_a_public_address_is_what_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert address_of(check_url("https://example.org/sparql"), may_be_here=False) == ("93.184.216.34", 443)
    connection = connect_to(check_url("https://example.org/x"), 5, until=0.0, may_be_here=False)
    assert connection.address == ("93.184.216.34", 443)


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
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        source(url, [])
    assert "secret" not in str(caught.value)


def test_a_host_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nothing)
    with pytest.raises(UpstreamUnavailable, match="no such host"):
        source("https://nowhere.example/sparql", []).ask("x", dict)


CONTACT = "me@example.org"


def claim(name: str, value: str | None, **changes: object) -> dict[str, object]:
    snak: dict[str, object] = {
        "snaktype": "value" if value else "somevalue",
        "property": name,
        "datatype": "wikibase-item",
    }
    if value:
        entity = {"entity-type": "item", "numeric-id": int(value[1:]), "id": value}
        snak["datavalue"] = {"value": entity, "type": "wikibase-entityid"}
    return {"mainsnak": snak, "type": "statement", "id": "Q1$1", "rank": "normal", **changes}


def document(qid: str = "Q746549", **changes: object) -> dict[str, Any]:
    ended = {"P582": [{"snaktype": "somevalue", "property": "P582", "datatype": "time", "hash": "0"}]}
    claims = {
        "P31": [claim("P31", "Q2095", rank="preferred"), claim("P31", None)],
        "P17": [claim("P17", "Q155", qualifiers=ended, **{"qualifiers-order": ["P582"]})],
        "P9999": [{"mainsnak": {"snaktype": "value", "datatype": "hologram", "datavalue": {"type": "hologram"}}}],
    }
    texts = {"labels": {"en": {"language": "en", "value": "dish"}}, "descriptions": {}, "aliases": {}, "sitelinks": {}}
    return {
        "id": qid, "type": "item", "lastrevid": 7, "modified": "2026-01-01T00:00:00Z", "claims": claims, **texts,
        **changes,
    }  # fmt: skip


def said(**entities: object) -> Said:
    return Said(body=json.dumps({"entities": entities}).encode())


def test_an_item_is_asked_for_once_and_read(tmp_path: Path) -> None:
    with answering(lambda path: said(Q746549=document())) as server:
        for _ in range(2):
            found = live_entity("Q746549", CONTACT, url=server.url, cache=tmp_path / "cache")
            assert (found.qid, found.label, found.description, found.revision) == ("Q746549", "dish", None, 7)
        ((path, headers, *_),) = server.asked
    assert path.endswith("/Q746549.json")
    assert headers["user-agent"].startswith("culturekit/")
    assert f"({CONTACT})" in headers["user-agent"]
    assert [(s.property, s.value, s.snak, s.rank, s.qualified, s.ended) for s in found.statements] == [
        ("P31", "Q2095", "value", "preferred", False, False), ("P31", None, "somevalue", "normal", False, False),
        ("P17", "Q155", "value", "normal", True, True),
    ]  # fmt: skip
    (kept,) = (tmp_path / "cache").rglob("*.json")
    kept.write_bytes(kept.read_bytes()[:-9])
    with answering(lambda path: said(Q746549=document())) as server, pytest.raises(UpstreamUnavailable):
        live_entity("Q746549", CONTACT, url="http://127.0.0.1:9", cache=tmp_path / "cache", pace=slept(1e6, []))


def test_a_merged_item_says_so() -> None:
    with answering(lambda path: said(Q5=document("Q5"))) as server:
        done = culturekit("kg", "entity", "Q4", "--contact", CONTACT, "--url", server.url)
    assert done.stdout.startswith("Q5 (dish)\n  Q4 was merged into it\n")
    assert "P17    Q155 (normal, qualified, ended)" in done.stdout


@pytest.mark.parametrize(
    "answer",
    [
        said(Q1={"id": "Q1"}),
        said(Q1=document("Q1", claims=[1])),
        said(Q1=document("Q1", claims={"P31": [{"rank": "normal"}]})),
        said(Q1=document("L1", type="lexeme")),
        said(Q1=document("Q1", type="property")),
    ],
)
def test_what_is_no_item_is_an_error(answer: Said) -> None:
    with answering(lambda path: answer) as server, pytest.raises(UpstreamUnavailable, match="as Wikidata documents"):
        live_entity("Q1", CONTACT, url=server.url)


def test_a_missing_item_and_a_missing_server_leave_with_their_codes() -> None:
    with answering(lambda path: Said(404)) as server:
        done = culturekit("kg", "entity", "Q1", "--contact", CONTACT, "--url", server.url)
        assert (done.returncode, "no such item" in done.stderr) == (2, True)
        with pytest.raises(UsageError, match="no such item"):
            live_entity("Q1", CONTACT, url=server.url)
    pauses: list[float] = []
    with pytest.raises(UpstreamUnavailable, match="did not answer in 5 tries") as caught:
        live_entity("Q1", CONTACT, url="http://127.0.0.1:9", pace=slept(1e6, pauses))
    assert caught.value.exit_code == 3
    assert [pause for pause in pauses if pause >= 1][:1] == [1.0]
    with pytest.raises(UsageError, match="not on the public internet"):
        live_entity("Q1", CONTACT, url="http://10.0.0.1/")


def test_a_value_of_type_entity_schema_is_a_value_that_is_no_item() -> None:
    """Since 2024 statements and qualifiers can name an EntitySchema, whose id has no number beside it."""
    schema: dict[str, Any] = {
        "snaktype": "value", "property": "P12861", "datatype": "entity-schema", "hash": "0",
        "datavalue": {"value": {"id": "E123", "entity-type": "entity-schema"}, "type": "wikibase-entityid"},
    }  # fmt: skip
    told = claim("P31", "Q2095", qualifiers={"P12861": [schema]}, **{"qualifiers-order": ["P12861"]})
    odd = {**claim("P31", None), "mainsnak": {**schema, "property": "P31"}}
    plain = {**claim("P12861", None), "mainsnak": schema}
    item = document("Q5", claims={"P31": [told, odd], "P12861": [plain]})
    live = [(s.property, s.value, s.snak, s.qualified) for s in read_entity("Q5", item).statements]
    assert live == [("P31", "Q2095", "value", True), ("P31", None, "value", False)]
    read = decode(json.dumps(item).encode(), languages=("en",))
    assert isinstance(read, Item)
    assert [(s.property, s.value, s.snak, s.qualified) for s in read.statements] == [
        ("P31", 2095, "value", True), ("P31", 0, "value", False),
    ]  # fmt: skip
