"""A public address that is checked, and a connection to it, for a limited time, that says whom to write to.

A URL may lead to public addresses, and to this machine only where the user names it. A name is resolved once and the
answer is the address that is connected to, so a name server cannot say one thing for the check and another for the
connection.
"""

import email.utils
import http.client
import ipaddress
import socket
import ssl
import time
from datetime import UTC, datetime
from urllib.parse import SplitResult, urlsplit

from culturekit.core.errors import UpstreamUnavailable, UsageError
from culturekit.llm.clients.timed_socket import TimedSocket

PORTS = {"http": 80, "https": 443}


def check_url(url: str) -> SplitResult:
    """Accept an http or https URL with a host, without a password and without what only a browser needs."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError("not a URL", where=url, found=str(error)) from error
    if parts.scheme not in PORTS or not parts.hostname or port == 0:
        raise UsageError("not a URL that can be asked", where=url, expected="http:// or https:// and a host")
    if parts.username or parts.password:
        raise UsageError("a URL with a password in it would be written down", where=parts.hostname)
    if parts.fragment or any(ord(letter) <= 32 or ord(letter) == 127 for letter in url):
        raise UsageError("not a URL that can be asked", where=repr(url), expected="no spaces and no #")
    return parts


def address_of(parts: SplitResult, *, may_be_here: bool) -> tuple[str, int]:
    """Resolve the host of a URL to one address and port; `may_be_here` allows a host that names this machine."""
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UpstreamUnavailable(
            "no such host", where=host, found=str(error), hint="Check the URL and the network."
        ) from error
    addresses = [str(answer[4][0]) for answer in found]
    for address in addresses:
        if not (is_public(address) or (may_be_here and names_this_machine(host) and is_here(address))):
            raise UsageError(
                "this address is not on the public internet, and is not asked",
                where=host,
                found=address,
                hint="A server on this machine is asked when its URL says localhost, 127.0.0.1 or [::1].",
            )
    return addresses[0], port


def names_this_machine(host: str) -> bool:
    """Tell whether a host, as written, means this machine."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_public(address: str) -> bool:
    """Tell whether an address is one that anybody can reach; one wrapped in IPv6 counts as what it wraps."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    inner = getattr(parsed, "ipv4_mapped", None) or getattr(parsed, "sixtofour", None)
    return (inner or parsed).is_global and not (inner or parsed).is_multicast


def is_here(address: str) -> bool:
    """Tell whether an address is this machine."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


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
