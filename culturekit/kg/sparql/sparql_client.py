"""A SPARQL 1.1 endpoint, asked politely: one connection, a contact, Retry-After obeyed, each reply kept on disk."""

import email.utils
import http.client
import logging
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import SplitResult, urlencode, urljoin

import msgspec

from culturekit.errors import IntegrityError, UpstreamUnavailable, UsageError
from culturekit.kg.sparql.public_address import PORTS, address_of, check_url, names_this_machine
from culturekit.llm.clients.timed_socket import TimedSocket
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import digest
from culturekit.version import VERSION

__all__ = ["SparqlClient", "Term", "check_contact", "connect_to", "retry_after"]

logger = logging.getLogger(__name__)

RESULTS = "application/sparql-results+json"
MAX_BYTES = 256_000_000
MAX_REDIRECTS = 5
TRIES = 5
LONGEST_WAIT = 600.0
"""Seconds; a server that asks for more than this is not available now."""
LONGEST_ANSWER = 600.0
"""Seconds from a question to the end of its answer; a public endpoint works on a query for one minute at most."""
BUSY = {429, 503}
PASSING = {500, 502, 504}
MOVED = {301, 302, 307, 308}


class Term(msgspec.Struct, frozen=True):
    """One value of a result row: an IRI, a literal or a blank node."""

    type: str
    value: str
    language: str = msgspec.field(name="xml:lang", default="")


class Bindings(msgspec.Struct, frozen=True):
    """The rows of a result."""

    bindings: list[dict[str, Term]]


class Results(msgspec.Struct, frozen=True):
    """A result as the W3C's SPARQL 1.1 JSON format writes it."""

    results: Bindings


class Kept(msgspec.Struct, frozen=True):
    """A reply on disk, with what it answers."""

    endpoint: str
    query: str
    reply: msgspec.Raw


class Passing(Exception):
    """A failure that may pass: try again after `wait` seconds, or, where it is None, after ever longer pauses."""

    def __init__(self, problem: str, wait: float | None = None) -> None:
        """Keep the reason for the last message."""
        super().__init__(problem)
        self.wait = wait


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


@dataclass(slots=True)
class SparqlClient:
    """Asks one endpoint. Use as a context manager: it holds a connection."""

    endpoint: str
    contact: str
    cache: Path
    timeout: float = 90.0
    longest: float = LONGEST_ANSWER
    pause: Callable[[float], None] = time.sleep
    asked: int = 0
    url: str = ""
    connection: "PinnedConnection | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse what could never be asked before anything is sent."""
        check_contact(self.contact)
        check_url(self.endpoint)
        self.url = self.endpoint
        self.cache.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        """Serve a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def select(self, query: str) -> list[Mapping[str, Term]]:
        """Answer a SELECT query, from disk where it was answered before."""
        path = self.cache / f"{digest([self.endpoint, query])}.json"
        kept = read_kept(path)
        if kept is not None and (kept.endpoint, kept.query) == (self.endpoint, query):
            return rows_of(bytes(kept.reply))
        reply, rows = self.ask(query)
        write_atomically(path, msgspec.json.encode(Kept(self.endpoint, query, msgspec.Raw(reply))))
        return rows

    def ask(self, query: str) -> tuple[bytes, list[Mapping[str, Term]]]:
        """Send a query until it is answered whole, or until there is no hope."""
        for attempt in range(1, TRIES + 1):
            try:
                reply = self.send(query)
                return reply, rows_of(reply)
            except Passing as failure:
                self.close()
                wait = float(2**attempt) if failure.wait is None else failure.wait
                if attempt == TRIES or wait > LONGEST_WAIT:
                    raise UpstreamUnavailable(
                        f"the endpoint did not answer in {attempt} {'try' if attempt == 1 else 'tries'}: {failure}",
                        where=self.endpoint,
                        found=f"a request to wait {wait:,.0f} s" if wait > LONGEST_WAIT else "",
                        hint="What was answered is kept: run the same command again and it goes on from there.",
                    ) from failure
                logger.warning("%s: %s; trying again in %.0f s", self.endpoint, failure, wait)
                self.pause(wait)
        raise AssertionError("unreachable")

    def send(self, query: str) -> bytes:
        """Send a query once, wherever the endpoint has moved."""
        for _ in range(MAX_REDIRECTS + 1):
            status, headers, body = self.post(query)
            if status not in MOVED:
                return accepted(status, headers, body, where=self.endpoint)
            self.close()
            self.url = moved_to(self.url, headers.get("Location", ""))
        raise UpstreamUnavailable("the endpoint is moved again and again", where=self.endpoint, found=self.url)

    def post(self, query: str) -> tuple[int, Mapping[str, str], bytes]:
        """Send one request over the one connection."""
        parts = check_url(self.url)
        target = parts.path + (f"?{parts.query}" if parts.query else "") or "/"
        headers = {
            "Accept": RESULTS,
            "Content-Type": "application/x-www-form-urlencoded",
            "User-Agent": f"culturekit/{VERSION} ({self.contact})",
        }
        self.asked += 1
        try:
            if self.connection is None:
                here = names_this_machine(check_url(self.endpoint).hostname or "")
                self.connection = connect_to(parts, self.timeout, may_be_here=here)
            self.connection.end_within(self.longest)
            self.connection.request("POST", target, urlencode({"query": query}).encode(), headers)
            response = self.connection.getresponse()
            body = response.read(MAX_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            raise Passing(f"the connection failed ({str(error) or type(error).__name__})") from error
        if len(body) > MAX_BYTES:
            raise UpstreamUnavailable("the reply is too large", where=self.endpoint, expected=f"{MAX_BYTES:,} bytes")
        return response.status, {name.title(): value for name, value in response.getheaders()}, body


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


def moved_to(url: str, location: str) -> str:
    """Follow a redirect, never from https to http; where it leads is checked like any URL."""
    target = urljoin(url, location)
    if not location or (url.startswith("https:") and not target.startswith("https:")):
        raise UpstreamUnavailable("the endpoint redirects to nowhere safe", where=url, found=repr(location))
    check_url(target)
    return target


def accepted(status: int, headers: Mapping[str, str], body: bytes, *, where: str) -> bytes:
    """Give the body of a good reply; say of any other whether it may pass."""
    if status == 200:
        return body
    said = " ".join(body[:2000].decode("utf-8", "replace").split())[:300]
    if status in BUSY:
        raise Passing(f"the endpoint is busy (HTTP {status})", retry_after(headers.get("Retry-After", "")))
    if status in PASSING:
        raise Passing(f"the endpoint failed (HTTP {status}: {said})")
    raise UpstreamUnavailable(f"the endpoint refused the query (HTTP {status})", where=where, found=said)


def retry_after(text: str) -> float | None:
    """Read how long a server wants to be left alone: seconds, or a date."""
    if text.strip().isdecimal():
        return float(text)
    try:
        date = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds())


def rows_of(reply: bytes) -> list[Mapping[str, Term]]:
    """Read the rows of a result; an answer that broke off, or is no result, may come whole the next time."""
    try:
        return list(msgspec.json.decode(reply, type=Results).results.bindings)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        end = reply[-200:].decode("utf-8", "replace")
        raise Passing(f"the reply is not a whole SPARQL result ({error}; it ends {end!r})") from error


def read_kept(path: Path) -> Kept | None:
    """Read a reply from disk; one that cannot be read is asked for again."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Kept)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        logger.warning("%s", IntegrityError("a kept reply is damaged and is asked for again", where=str(path)))
        logger.debug("%s", error)
        return None
