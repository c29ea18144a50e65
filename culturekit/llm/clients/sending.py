"""The HTTP client under both SDKs: bounded in time and size, no redirects, and what came kept as it came."""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from culturekit.llm.client import Failure
from culturekit.llm.failures import error_of, failure_within
from culturekit.llm.json_values import decoded

CONNECT_SECONDS = 10.0
KEPT_SECONDS = 4.0
LARGEST_REPLY = 64 * 2**20
LOOKED_AT = 4096
# Headers that say how a body travelled; what the SDK is given is unpacked already.
FRAMING = frozenset({"content-encoding", "content-length", "transfer-encoding"})


@dataclass(slots=True)
class Sending:
    """What came back for one request, byte for byte, whatever the SDK above makes of it."""

    largest: int | None = LARGEST_REPLY  # bytes after which a reply is cut off
    status: int = 0
    headers: Mapping[str, str] | None = None
    received: bytes = b""
    # Why nothing came; kept here, since some versions of the SDKs wrap whatever is raised under them.
    failure: Failure | None = None


CURRENT: ContextVar[Sending] = ContextVar("sending")

Thing = TypeVar("Thing")


async def sent_once(
    ask: Callable[[], Awaitable[Thing]], *, seconds: float, largest: int | None = LARGEST_REPLY
) -> tuple[Sending, Thing | None]:
    """Let an SDK ask, and give what came back within the time, beside what the SDK made of it.

    That is None where the SDK made nothing of it: a status that is no success, or bytes that it cannot read.

    Raises:
        Failure: nothing came in time, or the connection broke.
    """
    current = Sending(largest)
    token = CURRENT.set(current)
    try:
        async with asyncio.timeout(seconds):
            return current, await ask()
    except TimeoutError:
        raise current.failure or timed_out(f"after {seconds:g} s") from None
    except Exception:
        if current.failure is not None:
            raise current.failure from None
        if not current.status:
            raise
        return current, None
    finally:
        CURRENT.reset(token)


def verdict(current: Sending) -> Failure | None:
    """Tell whether a success is a failure, because it holds an error in place of a reply."""
    if b'"error"' not in current.received[:LOOKED_AT]:
        return None
    error = error_of(decoded(current.received))
    return failure_within(error, current.headers or {}, current.received) if error else None


def http_client(http: Any, *, seconds: float) -> Any:  # noqa: ANN401 - the httpx of whichever SDK
    """Make a client that keeps what comes for the current sending before the SDK sees it.

    `http` is the module that the SDK itself uses, httpx or its successor.
    """
    broken = (http.RequestError, ssl.SSLError, OSError)
    unsent = (http.ConnectError, http.ConnectTimeout, http.PoolTimeout, http.ProxyError, http.UnsupportedProtocol)
    timeout = http.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds / 2.0), pool=None)
    settings = {
        "timeout": timeout,
        "limits": http.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEPT_SECONDS),
        "verify": trusted(http),
    }
    lanes = Lanes(lambda: http.AsyncClient(**settings))

    class KeepingTransport(http.AsyncBaseTransport):  # type: ignore[misc]
        """Reads each reply to its end, and keeps its bytes."""

        async def handle_async_request(self, request: Any) -> Any:  # noqa: ANN401
            """Send a request within our limits of time, without following redirects, and keep the whole reply."""
            current, lane = CURRENT.get(), lanes.take()
            request.extensions = {**request.extensions, "timeout": timeout.as_dict()}
            try:
                response = await lane.send(request, stream=True, follow_redirects=False)
                try:
                    received = await read_to_end(response, current.largest)
                finally:
                    await response.aclose()
            except (*broken, Failure) as error:
                current.failure = failure_on_the_way(error, unsent=unsent, timeout=http.TimeoutException)
                raise current.failure from None
            finally:
                lanes.give_back(lane)
            current.status, current.headers, current.received = response.status_code, response.headers, received
            headers = [(name, value) for name, value in response.headers.multi_items() if name not in FRAMING]
            return http.Response(response.status_code, headers=headers, content=received)

        async def aclose(self) -> None:
            """Close the connections."""
            await lanes.close()

    return http.AsyncClient(transport=KeepingTransport(), timeout=timeout)


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


async def read_to_end(response: Any, largest: int | None) -> bytes:  # noqa: ANN401 - of whichever httpx
    """Read a reply to its end, unless it has none.

    Raises:
        Failure: it is longer than any reply can be.
    """
    parts, size = [], 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if largest is not None and size > largest:
            raise Failure(
                "server", f"a reply of more than {largest >> 20} MiB was cut off", status=response.status_code
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
