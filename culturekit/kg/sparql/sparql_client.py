"""A SPARQL 1.1 endpoint, asked politely: one connection, a contact, Retry-After obeyed, each reply kept on disk."""

import http.client
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urljoin

import msgspec
from SPARQLWrapper import JSON, POST, SPARQLWrapper

from culturekit.errors import UpstreamUnavailable
from culturekit.kg.web.patience import KEPT, Passing, Patience, kept_reply
from culturekit.kg.web.pinned_connection import (
    LONGEST_ANSWER,
    PinnedConnection,
    check_contact,
    check_url,
    connect_to,
    names_this_machine,
    retry_after,
)
from culturekit.stages.offline import check_sending
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import digest
from culturekit.version import VERSION

__all__ = ["SparqlClient", "Term"]

MAX_BYTES = 256_000_000
MAX_REDIRECTS = 5
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
    connection: PinnedConnection | None = field(default=None, repr=False)

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
        kept = kept_reply(path, Kept)
        if kept is not None and (kept.endpoint, kept.query) == (self.endpoint, query):
            return rows_of(bytes(kept.reply))
        reply, rows = self.ask(query)
        write_atomically(path, msgspec.json.encode(Kept(self.endpoint, query, msgspec.Raw(reply))))
        return rows

    def ask(self, query: str) -> tuple[bytes, list[Mapping[str, Term]]]:
        """Send a query until it is answered whole, or until there is no hope."""

        def answer() -> tuple[bytes, list[Mapping[str, Term]]]:
            try:
                reply = self.send(query)
                return reply, rows_of(reply)
            except Passing:
                self.close()
                raise

        return Patience("the endpoint", self.endpoint, KEPT, first=2.0, pause=self.pause).ask(answer)

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
        check_sending(self.endpoint)
        self.asked += 1
        try:
            if self.connection is None:
                here = names_this_machine(check_url(self.endpoint).hostname or "")
                self.connection = connect_to(check_url(self.url), self.timeout, may_be_here=here)
            self.connection.end_within(self.longest)
            asking = OverConnection(self.url, returnFormat=JSON, agent=f"culturekit/{VERSION} ({self.contact})")
            asking.connection = self.connection
            asking.setMethod(POST)
            asking.setOnlyConneg(True)
            asking.setQuery(query)
            response = asking.query().response
            body = response.read(MAX_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            raise Passing(f"the connection failed ({str(error) or type(error).__name__})") from error
        if len(body) > MAX_BYTES:
            raise UpstreamUnavailable("the reply is too large", where=self.endpoint, expected=f"{MAX_BYTES:,} bytes")
        return response.status, {name.title(): value for name, value in response.getheaders()}, body


class OverConnection(SPARQLWrapper):
    """SPARQLWrapper over a connection of ours: its own goes to any address, wherever it is sent, for any time."""

    connection: PinnedConnection

    def _query(self) -> tuple[http.client.HTTPResponse, str]:
        """Send what SPARQLWrapper made of the query, and give the reply whatever its status."""
        request = self._createRequest()
        self.connection.request("POST", request.selector, request.data, dict(request.header_items()))
        return self.connection.getresponse(), self.returnFormat


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


def rows_of(reply: bytes) -> list[Mapping[str, Term]]:
    """Read the rows of a result; an answer that broke off, or is no result, may come whole the next time."""
    try:
        return list(msgspec.json.decode(reply, type=Results).results.bindings)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        end = reply[-200:].decode("utf-8", "replace")
        raise Passing(f"the reply is not a whole SPARQL result ({error}; it ends {end!r})") from error
