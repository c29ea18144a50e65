import socket
from pathlib import Path

import pytest

from culturekit.generation.picture_store import PictureStore
from culturekit.generation.services.paid_runner import Fetched, FetchLimits, Refused, address_at, fetched
from tests.llm.server import RunningServer, Script, running_server
from tests.llm.server.answers import picture_bytes
from tests.llm.server.script import Pictures
from tests.llm.server.wire import HEADER, dripping

DIGEST = "ab" * 32
QUICK = FetchLimits(bytes=50_000, seconds=60.0, tries=2, pause=0.01)


def fetch(server: RunningServer, store: PictureStore, *, limits: FetchLimits = QUICK) -> Fetched:
    return fetched(f"{server.url}/pictures/{DIGEST}/0?signed=secret", store, base_url=server.openai_url, limits=limits)


@pytest.fixture
def store(tmp_path: Path) -> PictureStore:
    return PictureStore(tmp_path / "pictures")


def test_a_picture_is_fetched_once(store: PictureStore) -> None:
    with running_server() as server:
        came = fetch(server, store)
        assert store.get(came.sha256) == picture_bytes(DIGEST, 0, Pictures())
        server.follow(Script(pictures=Pictures(status=410)))
        assert fetch(server, store) == came


def test_a_busy_host_is_asked_again(store: PictureStore) -> None:
    with running_server(Script(pictures=Pictures(busy=1))) as server:
        assert fetch(server, store).sha256
    with running_server(Script(pictures=Pictures(busy=9))) as server:
        came = fetched(f"{server.url}/pictures/{'cd' * 32}/0", store, base_url=server.openai_url, limits=QUICK)
    assert "status 503" in came.reason
    assert "--fresh" in came.reason


@pytest.mark.parametrize(("pictures", "reason"), [
    (Pictures(status=404), "status 404"), (Pictures(status=403), "status 403"),
    (Pictures(type="text/html; charset=utf-8"), "no picture but text/html"),
    (Pictures(type="image/svg+xml"), "no picture but image/svg"), (Pictures(padding=60_000), "more than 50,000 bytes"),
    (Pictures(form="torn", side=400), "could not be reached"),
    (Pictures(moves="/pictures/x/0"), "sent on more than 3 times"),
    (Pictures(moves="ftp://example.org/x.png"), "not https://"),
])  # fmt: skip
def test_what_is_not_a_picture_is_not_kept(store: PictureStore, pictures: Pictures, reason: str) -> None:
    with running_server(Script(pictures=pictures)) as server:
        came = fetch(server, store)
    assert reason in came.reason
    assert "secret" not in came.reason
    assert not came.sha256
    assert not list(store.folder.rglob("*"))


PICTURE = HEADER + b"image/png\r\nContent-Length: 40000\r\n"


@pytest.mark.parametrize("begin", [b"", HEADER, PICTURE + b"\r\n", PICTURE + b"Connection: close\r\n\r\n"])
def test_a_slow_host_is_left(store: PictureStore, begin: bytes) -> None:
    with dripping(begin) as url:
        came = fetched(url, store, base_url="http://127.0.0.1:1/v1", limits=FetchLimits(seconds=0.5, tries=1))
    assert "TimeoutError" in came.reason


PUBLIC = "https://api.openai.com/v1"


@pytest.mark.parametrize("url", [
    "https://127.0.0.1/x.png", "https://localhost/x.png", "https://10.1.2.3/x.png", "https://192.168.0.1:8443/x.png",
    "https://169.254.169.254/latest/meta-data", "https://[::1]/x.png", "https://[::ffff:10.0.0.1]/x.png",
    "https://[fe80::1]/x.png", "https://0.0.0.0/x.png", "https://2130706433/x.png", "https://100.64.0.1/x.png",
    "https://224.0.0.1/x.png", "http://93.184.216.34/x.png", "file:///etc/passwd",
    "https://user:word@93.184.216.34/x.png", "https://93.184.216.34/x.png\r\nHost: other", "https://[bad/x.png", "",
])  # fmt: skip
def test_no_address_leads_inwards(url: str) -> None:
    with pytest.raises(Refused):
        address_at(url, base_url=PUBLIC)


def test_a_private_number_is_refused_and_the_number_that_was_checked_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, 443)) for number in ("93.184.216.34", "10.0.0.7")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: numbers)
    with pytest.raises(Refused, match="private"):
        address_at("https://pictures.example.org/x.png", base_url=PUBLIC)
    numbers = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: numbers)
    found = address_at("https://pictures.example.org/x.png?a=b", base_url=PUBLIC)
    assert (found.number, found.host, found.path) == ("93.184.216.34", "pictures.example.org", "/x.png?a=b")


def test_a_service_in_a_private_network_may_name_itself_and_nobody_else() -> None:
    base = "http://10.0.0.5:8000/v1"
    assert address_at("http://10.0.0.5:8000/files/x.png", base_url=base).number == "10.0.0.5"
    for url in ("http://10.0.0.5:22/x", "https://10.0.0.6/x.png", "http://127.0.0.1:8000/x.png"):
        with pytest.raises(Refused):
            address_at(url, base_url=base)
