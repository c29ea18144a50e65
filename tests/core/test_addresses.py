import socket
from http.server import BaseHTTPRequestHandler

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.addresses import NotPublic, is_public, is_this_machine, resolve
from culturekit.core.errors import UpstreamUnavailable, UsageError
from culturekit.generation.services.paid_runner import Refused, address_at
from culturekit.kg.polite_source import address_of, check_url
from culturekit.llm.price_update import get
from tests.loopback import served

PRIVATE = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.9", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "192.0.0.9", "192.0.0.192", "192.88.99.1", "198.18.0.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fec0::1", "fd12::1", "ff02::1", "::ffff:10.0.0.1", "::10.0.0.1",
    "2002:7f00:1::1", "2002:a9fe:a9fe::1", "2002:c000:0009::", "64:ff9b::a00:1", "64:ff9b:1::a00:1",
    "2001:0:4136:e378:8000:63bf:f5ff:fffe", "not an address", "",
]  # fmt: skip
PUBLIC = [
    "93.184.216.34", "192.1.0.1", "2606:2800:220::1", "::ffff:93.184.216.34", "2002:5db8:d822::1", "64:ff9b::5db8:d822",
]  # fmt: skip


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6))
def test_public_addresses_are_and_no_private_one_is(address: object) -> None:
    assert all(map(is_public, PUBLIC)) and not any(map(is_public, PRIVATE))
    if is_public(str(address)):
        traits = ("is_private", "is_loopback", "is_link_local", "is_multicast", "is_unspecified")
        assert not any(getattr(address, trait) for trait in traits)


@pytest.mark.parametrize(
    "address", [one for one in PRIVATE if (one[:1].isdigit() and one.count(".") == 3) or "::" in one]
)
def test_who_fetches_refuses_a_public_name_of_a_private_address(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    url = "https://example.org/x.png"
    with pytest.raises(UsageError, match="not on the public internet"):
        address_of(check_url(url), may_be_here=True)
    for base in ("https://service.example.com", "http://127.0.0.1:8000/v1"):
        with pytest.raises(Refused):
            address_at(url, base_url=base)
    with pytest.raises(UsageError, match="public internet"):
        get(url)


def test_this_machine_answers_only_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(map(is_this_machine, ("localhost", "LOCALHOST.", "a.localhost", "127.8.8.8", "[::1]", "::1")))
    assert not any(map(is_this_machine, ("128.0.0.1", "localhost.example.org", "0.0.0.0", "")))
    assert resolve("127.0.0.1", 80, here=True) == "127.0.0.1"
    for host, here in [("127.0.0.1", False), ("169.254.169.254", True), ("10.0.0.1", True)]:
        with pytest.raises(NotPublic):
            resolve(host, 80, here=here)
    with pytest.raises(Refused):
        address_at("http://169.254.169.254/latest/meta-data", base_url="http://127.0.0.1:8000/v1")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("10.0.0.7", 80))])
    with pytest.raises(NotPublic):
        resolve("localhost", 80, here=True)


def test_what_is_read_comes_from_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    meanings = iter(["93.184.216.34", "127.0.0.1"])
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", (next(meanings), 80))])
    connected: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], *_: object) -> socket.socket:
        connected.append(address)
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(UpstreamUnavailable, match="refused"):
        get("http://prices.example.org/list.json")
    assert connected == [("93.184.216.34", 80)]


class Moving(BaseHTTPRequestHandler):
    """Sends on from `/to?URL`, without end from `/round`, and gives all else its path."""

    def do_GET(self) -> None:
        target = self.path.partition("?")[2] if self.path.startswith("/to?") else ""
        target = "/round" if self.path == "/round" else target
        self.send_response(302 if target else 200)
        self.send_header("Location", target) if target else None
        self.end_headers()
        self.wfile.write(b"" if target else self.path.encode())

    def log_message(self, *parts: object) -> None:
        """Say nothing."""


def test_who_reads_an_address_is_sent_on_but_never_inwards_and_never_with_a_key() -> None:
    with served(Moving) as url:
        assert get(f"{url}/to?/list.json") == b"/list.json"
        with pytest.raises(UpstreamUnavailable, match="HTTP 302"):
            get(f"{url}/to?/list.json", {"Authorization": "Bearer key"})
        with pytest.raises(UpstreamUnavailable, match="sent on too often"):
            get(f"{url}/round")
        for inwards in ("http://10.0.0.1/", "http://169.254.169.254/latest/meta-data"):
            with pytest.raises(UsageError, match="public internet"):
                get(f"{url}/to?{inwards}")
        with pytest.raises(UpstreamUnavailable, match="no address with http"):
            get(f"{url}/to?file:///etc/passwd")
