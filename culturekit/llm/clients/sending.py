"""The HTTP client under both SDKs: bounded in time and size, no redirects, and what came kept as it came."""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

from culturekit.llm.client import Failure
from culturekit.llm.clients.error_bodies import error_of
from culturekit.llm.failures import failure_of, failure_within
from culturekit.llm.reading.json_values import decoded

__all__ = ["LARGEST_REPLY", "Sending", "http_client", "sent_once"]

CONNECT_SECONDS = 10.0
KEPT_SECONDS = 4.0
LARGEST_REPLY = 64 * 2**20
LOOKED_AT = 4096


@dataclass(slots=True)
class Sending:
    """One request and what came back; the SDK between us and the wire sees neither."""

    content: bytes
    status: int = 0
    headers: Mapping[str, str] | None = None
    received: bytes = b""
    failure: Failure | None = None
    """Why nothing came; kept here, since some versions of the SDKs wrap whatever is raised under them."""


CURRENT: ContextVar[Sending] = ContextVar("sending")


async def sent_once(content: bytes, post: Callable[[], Awaitable[object]], *, seconds: float) -> Sending:
    """Let an SDK post, send these bytes in its place, and give what came back within the time.

    Raises:
        Failure: nothing came in time, or the connection broke.
    """
    current = Sending(content)
    token = CURRENT.set(current)
    try:
        async with asyncio.timeout(seconds):
            await post()
    except TimeoutError:
        raise current.failure or timed_out(f"after {seconds:g} s") from None
    except Exception:
        if current.failure is not None:
            raise current.failure from None
        raise
    finally:
        CURRENT.reset(token)
    return current


def verdict(current: Sending) -> Failure | None:
    """Tell whether what came back is a failure; a 200 is one when it holds an error in place of a reply."""
    headers = current.headers or {}
    if current.status != 200:
        return failure_of(current.status, headers, current.received)
    if b'"error"' not in current.received[:LOOKED_AT]:
        return None
    error = error_of(decoded(current.received))
    return failure_within(error, headers, current.received) if error else None


def http_client(http: Any, *, seconds: float) -> Any:  # noqa: ANN401 - the httpx of whichever SDK
    """Make a client that sends the bytes of the current sending, whatever the SDK would have written.

    `http` is the module that the SDK itself uses, httpx or its successor. The SDK gives address, key and headers.
    """
    broken = (http.RequestError, ssl.SSLError, OSError)
    unsent = (http.ConnectError, http.ConnectTimeout, http.PoolTimeout, http.ProxyError, http.UnsupportedProtocol)
    settings = {
        "timeout": http.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds / 2.0), pool=None),
        "limits": http.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEPT_SECONDS),
        "verify": trusted(http),
    }
    lanes = Lanes(lambda: http.AsyncClient(**settings))

    class WireClient(http.AsyncClient):  # type: ignore[misc]
        """Sends our bytes and keeps theirs."""

        def build_request(self, method: str, url: Any, **parts: Any) -> Any:  # noqa: ANN401
            """Build what the SDK asks for, with our bytes as its content and our limits of time."""
            parts["content"] = CURRENT.get().content
            parts.pop("timeout", None)
            return super().build_request(method, url, **parts)

        async def send(self, request: Any, **options: Any) -> Any:  # noqa: ANN401
            """Send, keep the whole reply, and tell the SDK no more than that it came."""
            current, lane = CURRENT.get(), lanes.take()
            try:
                response = await lane.send(request, **{**options, "stream": True, "follow_redirects": False})
                try:
                    current.received = await read_to_end(response)
                finally:
                    await response.aclose()
            except (*broken, Failure) as error:
                current.failure = failure_on_the_way(error, unsent=unsent, timeout=http.TimeoutException)
                raise current.failure from None
            finally:
                lanes.give_back(lane)
            current.status, current.headers = response.status_code, response.headers
            return http.Response(200, request=request, content=b"{}")

        async def aclose(self) -> None:
            """Close the connections too."""
            await lanes.close()
            await super().aclose()

    return WireClient(**settings)


@cache
def trusted(http: Any) -> ssl.SSLContext:  # noqa: ANN401 - as above
    """Load the certificates that are trusted, once for all clients: that takes longer than many a request."""
    found: ssl.SSLContext = http.create_ssl_context()
    return found


def failure_on_the_way(error: Exception, *, unsent: tuple[type[Exception], ...], timeout: type[Exception]) -> Failure:
    """Tell what broke, and whether the request had left by then: only then can it have been sold."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, unsent):
        return Failure("connection", reason_of(error), sent=False)
    if isinstance(error, timeout):
        return timed_out(f"({type(error).__name__})")
    return Failure("connection", f"the connection broke ({reason_of(error)})")


def timed_out(how: str) -> Failure:
    """Say that a reply took too long, and what to do about it."""
    return Failure("timeout", f"a request timed out {how}; raise timeout= in the SPEC if replies take longer")


def reason_of(error: BaseException) -> str:
    """Name the reason at the bottom of an error by its number: messages of the HTTP client may hold what was sent."""
    name = type(error).__name__
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, ssl.SSLError):
            return f"TLS: {(behind.reason or 'handshake failed').replace('_', ' ').lower()}"
        if isinstance(behind, socket.gaierror):
            return "the name of the server is not known"
        if isinstance(behind, OSError) and behind.errno:
            return os.strerror(behind.errno).lower()
        behind = behind.__cause__ or behind.__context__
    return name


async def read_to_end(response: Any) -> bytes:  # noqa: ANN401 - the response of whichever httpx
    """Read a reply to its end, unless it has none.

    Raises:
        Failure: it is longer than any reply can be.
    """
    parts, size = [], 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > LARGEST_REPLY:
            raise Failure(
                "server", f"a reply of more than {LARGEST_REPLY >> 20} MiB was cut off", status=response.status_code
            )
    return parts[0] if len(parts) == 1 else b"".join(parts)


class Lanes:
    """HTTP clients of one connection each, one for each request under way: none to choose from.

    A pool looks through all its idle connections before each request, which costs more than the request itself where
    many go at once. Here the lane that was free last is taken, and one is opened where none is free.
    """

    def __init__(self, open_lane: Callable[[], Any]) -> None:
        """Start with none."""
        self.open_lane = open_lane
        self.all: list[Any] = []
        self.free: list[Any] = []

    def take(self) -> Any:  # noqa: ANN401 - a client of whichever httpx
        """Take a lane; it is given back when its reply has been read or has failed."""
        if self.free:
            return self.free.pop()
        self.all.append(self.open_lane())
        return self.all[-1]

    def give_back(self, lane: Any) -> None:  # noqa: ANN401 - a client of whichever httpx
        """Leave a lane to the next request."""
        self.free.append(lane)

    async def close(self) -> None:
        """Close all of them."""
        while self.all:
            await self.all.pop().aclose()
        self.free.clear()
