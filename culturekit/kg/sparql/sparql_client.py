"""A SPARQL 1.1 endpoint, asked politely, each reply kept on disk."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from SPARQLWrapper import JSON, POST, SPARQLWrapper

from culturekit.kg.web.pinned_connection import LONGEST_ANSWER, check_contact
from culturekit.kg.web.polite_source import KeptAnswers, Pace, PoliteSource

MAX_BYTES = 256_000_000
PER_SECOND = 1000.0
"""No limit of ours: an endpoint of one's own answers as fast as it can; Wikimedia's keeps the pace of Wikimedia."""


class Term(msgspec.Struct, frozen=True, omit_defaults=True):
    """One value of a result row: an IRI, a literal or a blank node."""

    type: str
    value: str
    language: str = msgspec.field(name="xml:lang", default="")


Row = Mapping[str, Term]


class Bindings(msgspec.Struct, frozen=True):
    """The rows of a result."""

    bindings: list[dict[str, Term]]


class Results(msgspec.Struct, frozen=True):
    """A result as the W3C's SPARQL 1.1 JSON format writes it."""

    results: Bindings


class SparqlClient:
    """Asks one endpoint. Use as a context manager: it holds connections."""

    def __init__(
        self, endpoint: str, contact: str, cache: Path, *, timeout: float = 90.0, pace: Pace | None = None
    ) -> None:
        """Refuse what could never be asked before anything is sent."""
        check_contact(contact)
        self.endpoint = endpoint
        self.source = PoliteSource(
            endpoint, contact, pace or Pace(PER_SECOND), timeout=timeout, longest=LONGEST_ANSWER, largest=MAX_BYTES
        )
        self._kept = KeptAnswers(cache, Results)

    def __enter__(self) -> Self:
        """Serve a block."""
        self.source.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.source.__exit__(kind, error, trace)

    def select(self, query: str) -> Sequence[Row]:
        """Answer a SELECT query, from disk where it was answered before."""
        question = [self.endpoint, query]
        found = self._kept.find(question)
        if found is None:
            found = self.source.ask("", Results, post=_request(self.endpoint, query))
            self._kept.keep(question, found)
        return found.results.bindings


def _request(endpoint: str, query: str) -> tuple[bytes, Mapping[str, str]]:
    """Let SPARQLWrapper write the request, and not send it: it goes anywhere, wherever it is sent, for any time."""
    asking = SPARQLWrapper(endpoint, returnFormat=JSON)
    asking.setMethod(POST)
    asking.setOnlyConneg(True)
    asking.setQuery(query)
    request = asking._createRequest()
    assert isinstance(request.data, bytes)
    return request.data, {name: value for name, value in request.header_items() if name != "User-agent"}
