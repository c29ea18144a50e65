"""What comes in and what goes out on the wire, apart from sockets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import orjson

__all__ = ["Arrived", "Cut", "Departing", "json_departing"]

Cut: TypeAlias = Literal["", "before", "inside", "after"]
"""Where a connection is cut: nowhere; before anything is done; inside the reply; once the work is done, unsaid."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """One HTTP request, whole. Header names are in lower case; `at` is in seconds since the server started."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    at: float


@dataclass(slots=True)
class Departing:
    """One HTTP reply and how it is delivered.

    `delay` is how long it waits, None for ever. A reply with `pieces` is sent chunked, `pace` seconds between pieces.
    `on_work` is called when the waiting is over, `on_sent` when the last byte was handed over, `on_left` when the
    client left before that.
    """

    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    pieces: list[bytes] | None = None
    delay: float | None = 0.0
    pace: float = 0.0
    cut: Cut = ""
    on_work: Callable[[], None] | None = None
    on_sent: Callable[[], None] | None = None
    on_left: Callable[[], None] | None = None


def json_departing(value: Any, status: int = 200, headers: list[tuple[str, str]] | None = None) -> Departing:
    """Write a value as a reply in JSON."""
    return Departing(status, [("content-type", "application/json"), *(headers or [])], orjson.dumps(value))
