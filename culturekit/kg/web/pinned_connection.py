"""A connection to the address that was checked, for a limited time, by somebody who says whom to write to."""

import email.utils
import http.client
import socket
import ssl
import time
from datetime import UTC, datetime
from urllib.parse import SplitResult

from culturekit.errors import UsageError
from culturekit.kg.web.public_address import PORTS, address_of
from culturekit.llm.clients.timed_socket import TimedSocket

__all__ = ["LONGEST_ANSWER", "PinnedConnection", "check_contact", "connect_to", "retry_after"]

LONGEST_ANSWER = 600.0
"""Seconds from a question to the end of its answer; a public endpoint works on a query for one minute at most."""


def check_contact(contact: str) -> str:
    """Accept an address by which the people behind an endpoint can reach whoever asks it."""
    plain = contact.isascii() and contact.isprintable() and " " not in contact
    if not plain or not ("@" in contact.strip("@") or contact.startswith(("http://", "https://"))):
        raise UsageError(
            "an endpoint is told whom to write to when something goes wrong",
            expected="a mail address or a URL",
            found=repr(contact),
            hint="Give it with --contact.",
        )
    return contact


class PinnedConnection(http.client.HTTPConnection):
    """A connection to the address that was checked, whatever the host's name means by now, and for a limited time."""

    pinned: tuple[str, int] = ("", 0)
    secure = False
    until = 0.0

    def end_within(self, seconds: float) -> None:
        """Give the next question, and all of its answer, so many seconds from now."""
        self.until = time.monotonic() + seconds
        if isinstance(self.sock, TimedSocket):
            self.sock.until = self.until

    def connect(self) -> None:
        """Open the socket, and agree on keys where it is secure: the certificate is held against the host's name."""
        opened = socket.create_connection(self.pinned, self.timeout)
        if self.secure:
            try:
                opened = ssl.create_default_context().wrap_socket(opened, server_hostname=self.host)
            except BaseException:
                opened.close()
                raise
        self.sock = TimedSocket(opened, until=self.until, silence=float(self.timeout or LONGEST_ANSWER))


def connect_to(parts: SplitResult, timeout: float, *, may_be_here: bool) -> PinnedConnection:
    """Prepare a connection to the address that a URL's host has now, after a look at that address."""
    address = address_of(parts, may_be_here=may_be_here)
    connection = PinnedConnection(parts.hostname or "", address[1], timeout=timeout)
    connection.pinned, connection.secure = address, parts.scheme == "https"
    connection.default_port = PORTS[parts.scheme]
    return connection


def retry_after(text: str) -> float | None:
    """Read how long a server wants to be left alone: seconds, or a date."""
    if text.strip().isdecimal():
        return float(text)
    try:
        date = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds())
