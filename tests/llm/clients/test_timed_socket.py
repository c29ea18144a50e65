"""What drips, be it a header or a body, on a connection that stays open or not, is left in time."""

import http.client
import socket
import time
from urllib.parse import urlsplit

import pytest

from culturekit.llm.clients.timed_socket import TimedSocket
from tests.llm.server.dripping import HEADER, dripping

BODY = HEADER + b"text/plain\r\nContent-Length: 9000\r\n"


@pytest.mark.parametrize(
    "begin", [b"", b"HTTP/1.1 2", HEADER, BODY + b"\r\n", BODY + b"Connection: close\r\n\r\n"],
    ids=["nothing", "status", "header", "body", "body of a closed connection"],
)  # fmt: skip
def test_an_exchange_ends_in_time(begin: bytes) -> None:
    with dripping(begin) as url:
        parts = urlsplit(url)
        connected = socket.create_connection((str(parts.hostname), int(parts.port or 0)))
        connection = http.client.HTTPConnection(str(parts.hostname))
        connection.sock = TimedSocket(connected, until=time.monotonic() + 0.3, silence=10)
        with pytest.raises(TimeoutError):
            connection.request("GET", "/")
            connection.getresponse().read()
        connection.close()


def test_silence_ends_it_too() -> None:
    ours, theirs = socket.socketpair()
    with theirs, TimedSocket(ours, until=time.monotonic() + 1000, silence=0.05).makefile("rb") as file:
        theirs.sendall(b"a line\n")
        assert file.readline() == b"a line\n"
        with pytest.raises(TimeoutError):
            file.readline()
    ours.close()


def test_nothing_is_sent_when_there_is_no_time_left() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError, match="as a whole"):
        TimedSocket(ours, until=time.monotonic() - 1, silence=10).sendall(b"late")
