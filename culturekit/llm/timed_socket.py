"""A socket whose exchange ends in time: a server that sends a byte now and then, in a header or a body, is left.

The timeout of a socket is one on silence: it begins again with every byte.
"""

import http.client
import io
import socket
import ssl
import time
from functools import cache
from typing import cast

_PIECE = 65_536


class PinnedConnection(http.client.HTTPConnection):
    """A connection to the address that was checked, whatever the host's name means by now, and for a limited time.

    `until`, on the monotonic clock, is when everything has to be done; `silence` is how many seconds may pass without
    a byte, by default as many as connecting may take.
    """

    def __init__(
        self, host: str, address: tuple[str, int], *, secure: bool, until: float, timeout: float, silence: float = 0.0
    ) -> None:
        """Connect when the first request is sent."""
        super().__init__(host, address[1], timeout=max(timeout, 0.001))
        self.address, self.secure, self.until, self.silence = address, secure, until, silence or timeout
        self.default_port = 443 if secure else 80

    def end_at(self, until: float) -> None:
        """Give the next question, and all of its answer, another end."""
        self.until = until
        if isinstance(self.sock, TimedSocket):
            self.sock.until = until

    def connect(self) -> None:
        """Open the socket, and agree on keys where it is secure: the certificate is held against the host's name."""
        opened = socket.create_connection(self.address, self.timeout)
        if self.secure:
            try:
                opened = _trusted().wrap_socket(opened, server_hostname=self.host)
            except BaseException:
                opened.close()
                raise
        self.sock = TimedSocket(opened, until=self.until, silence=self.silence)


@cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()


class TooLarge(Exception):
    """A reply has more bytes than are taken."""


def read_to_end(response: http.client.HTTPResponse, largest: int) -> bytes:
    """Read a reply to its end.

    Raises:
        ConnectionError: it broke off.
        TooLarge: it goes on beyond `largest` bytes.
    """
    pieces, size = [], 0
    while piece := response.read1(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > largest:
            raise TooLarge
    if response.length:
        raise ConnectionError(f"the reply broke off {response.length:,} bytes before its end")
    return b"".join(pieces)


class TimedSocket:
    """Stands for a connected socket in `http.client`.

    `until`, on the monotonic clock, is when everything has to be done; `silence` is how many seconds may pass without
    a byte.
    """

    def __init__(self, connected: socket.socket, *, until: float, silence: float) -> None:
        """Take a socket over."""
        self.connected, self.until, self.silence = connected, until, silence

    def wait_no_longer(self) -> None:
        """Let the next step end in time."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("it took too long as a whole")
        self.connected.settimeout(min(left, self.silence))

    def sendall(self, content: bytes) -> None:
        """Send, in the time that is left."""
        self.wait_no_longer()
        self.connected.sendall(content)

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return what comes as a file; `http.client` asks for no other than "rb"."""
        raw = cast("io.RawIOBase", self.connected.makefile("rb", buffering=0))
        return io.BufferedReader(_TimedReader(raw, self))

    def close(self) -> None:
        """Close it; a file that was made of it stays open."""
        self.connected.close()


class _TimedReader(io.RawIOBase):
    """Reads what comes through a timed socket."""

    def __init__(self, raw: io.RawIOBase, timed: TimedSocket) -> None:
        self.raw, self.timed = raw, timed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int | None:
        """Read what is there, or wait for it no longer than there is time."""
        self.timed.wait_no_longer()
        return self.raw.readinto(buffer)  # type: ignore[arg-type]

    def close(self) -> None:
        self.raw.close()
        super().close()
