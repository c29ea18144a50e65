"""What the clients of remote services share: an HTTP client that keeps what comes, keys, limits, sending once."""

import asyncio
import errno
import os
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeVar

from culturekit.core.errors import UsageError
from culturekit.core.registry import Spec
from culturekit.llm.client import Failure, Identity, Outgoing, Quota, Rate, Reply, Request
from culturekit.llm.clients.client_options import ServiceOptions
from culturekit.llm.endpoints import is_loopback
from culturekit.llm.failures import error_of, failure_of
from culturekit.llm.json_values import decoded
from culturekit.llm.prices import parse_price, rate_of
from culturekit.llm.redaction import Secret, in_json

_CONNECT_SECONDS = 10.0
_KEPT_SECONDS = 4.0
_LARGEST_REPLY = 64 * 2**20
_LOOKED_AT = 4096
# Headers that say how a body travelled; what the SDK is given is unpacked already.
_FRAMING = frozenset({"content-encoding", "content-length", "transfer-encoding"})


@dataclass(slots=True)
class Sending:
    """What came back for one request, byte for byte, whatever the SDK above makes of it."""

    largest: int | None = _LARGEST_REPLY  # bytes after which a reply is cut off
    status: int = 0
    headers: Mapping[str, str] | None = None
    received: bytes = b""
    # Why nothing came; kept here, since some versions of the SDKs wrap whatever is raised under them.
    failure: Failure | None = None


_CURRENT: ContextVar[Sending] = ContextVar("sending")

Thing = TypeVar("Thing")


def http_client(http: Any, *, seconds: float) -> Any:  # noqa: ANN401 - the httpx of whichever SDK
    """Make a client that keeps what comes for the current sending before the SDK sees it.

    `http` is the module that the SDK itself uses, httpx or its successor.
    """
    broken = (http.RequestError, ssl.SSLError, OSError)
    unsent = (http.ConnectError, http.ConnectTimeout, http.PoolTimeout, http.ProxyError, http.UnsupportedProtocol)
    timeout = http.Timeout(seconds, connect=min(_CONNECT_SECONDS, seconds / 2.0), pool=None)
    settings = {
        "timeout": timeout,
        "limits": http.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=_KEPT_SECONDS),
        "verify": _trusted(http),
    }
    # One HTTP client of one connection for each request under way: a pool looks through all its idle connections before
    # each request, which costs more than the request itself where many go at once.
    lanes: list[Any] = []
    free: list[Any] = []

    class KeepingTransport(http.AsyncBaseTransport):  # type: ignore[misc]
        """Reads each reply to its end, and keeps its bytes."""

        async def handle_async_request(self, request: Any) -> Any:  # noqa: ANN401
            """Send a request within our limits of time, without following redirects, and keep the whole reply."""
            current = _CURRENT.get()
            if not free:
                lanes.append(http.AsyncClient(**settings))
                free.append(lanes[-1])
            lane = free.pop()
            request.extensions = {**request.extensions, "timeout": timeout.as_dict()}
            try:
                response = await lane.send(request, stream=True, follow_redirects=False)
                try:
                    received = await _read_to_end(response, current.largest)
                finally:
                    await response.aclose()
            except (*broken, Failure) as error:
                current.failure = _failure_on_the_way(error, unsent=unsent, timeout=http.TimeoutException)
                raise current.failure from None
            finally:
                free.append(lane)
            current.status, current.headers, current.received = response.status_code, response.headers, received
            headers = [(name, value) for name, value in response.headers.multi_items() if name not in _FRAMING]
            return http.Response(response.status_code, headers=headers, content=received)

        async def aclose(self) -> None:
            free.clear()
            while lanes:
                await lanes.pop().aclose()

    return http.AsyncClient(transport=KeepingTransport(), timeout=timeout)


@cache
def _trusted(http: Any) -> ssl.SSLContext:  # noqa: ANN401 - as above
    """Load the certificates that are trusted, once for all clients: that takes longer than many a request."""
    found: ssl.SSLContext = http.create_ssl_context()
    return found


def _failure_on_the_way(error: Exception, *, unsent: tuple[type[Exception], ...], timeout: type[Exception]) -> Failure:
    """Tell what broke, and whether the request had left by then: only then can it have been sold."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, unsent):
        return Failure("connection", _reason_of(error), sent=False)
    if isinstance(error, timeout):
        return _timed_out(f"({type(error).__name__})")
    return Failure("connection", f"the connection broke ({_reason_of(error)})")


def _timed_out(how: str) -> Failure:
    return Failure("timeout", f"a request timed out {how}; raise timeout= in the SPEC if replies take longer")


def _reason_of(error: BaseException) -> str:
    """Name the reason at the bottom of an error by its number: messages of the HTTP client may hold what was sent."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return f"TLS: {(cause.reason or 'handshake failed').replace('_', ' ').lower()}"
        if isinstance(cause, socket.gaierror):
            return "the name of the server is not known"
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno).lower()
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


async def _read_to_end(response: Any, largest: int | None) -> bytes:  # noqa: ANN401 - of whichever httpx
    """Read a reply to its end, unless it has none."""
    parts, size = [], 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if largest is not None and size > largest:
            raise Failure(
                "server", f"a reply of more than {largest >> 20} MiB was cut off", status=response.status_code
            )
    return parts[0] if len(parts) == 1 else b"".join(parts)


_REFUSED = os.strerror(errno.ECONNREFUSED).lower()
# Seconds after which a server on this machine is given up where nobody listens, unless the SPEC states a patience.
_NOBODY_HERE = 60.0


class Connection(Protocol):
    """An SDK that is ready to ask one endpoint."""

    sdk: Any

    async def ask(self, body: dict[str, Any]) -> object:
        """Make a request of typed arguments from its body, and send it once."""

    async def close(self) -> None:
        """Close the connections."""


@dataclass(frozen=True, slots=True)
class WireFormat:
    """How requests are written, images are put in, and replies are read."""

    compose: Callable[[Request], Outgoing]
    wire: Callable[[Outgoing], bytes]
    read: Callable[[bytes], Reply]


class RemoteClient:
    """A client of a far service; connections are made on first use and belong to one event loop."""

    caveat = ""

    def __init__(
        self,
        identity: Identity,
        options: ServiceOptions,
        *,
        key: Callable[[], Secret | None],
        connect: Callable[[Secret | None], Connection],
        written: WireFormat,
    ) -> None:
        """Take the parts; no key is read and nothing is imported before `ready` or the first request."""
        self.identity, self.settings, self.key, self.connect, self.written = identity, options, key, connect, written
        self.secret: Secret | None = None
        self.open: tuple[asyncio.AbstractEventLoop, Connection] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.identity})"

    @property
    def model(self) -> str:
        """What exactly answers."""
        return self.identity.model

    @property
    def options(self) -> Mapping[str, object]:
        """What decides the answers, without what is only about the way there."""
        return self.settings.answering() | {"base_url": self.identity.base_url}

    @property
    def quota(self) -> Quota:
        """What the provider allows, as the SPEC states it."""
        return self.settings.quota

    @property
    def rate(self) -> Rate | None:
        """What tokens cost, as the SPEC states it or the price list knows it."""
        return parse_price(self.settings.price) if self.settings.price else rate_of(self.identity)

    def ready(self) -> None:
        """Check that a request could be sent: the SDK and the key are there; nothing is sent.

        Raises:
            MissingDependency: one of them is not.
        """
        self.secret = self.key()
        self.connect(self.secret)

    def compose(self, request: Request) -> Outgoing:
        """Write a request as it will leave."""
        return self.written.compose(request)

    async def send(self, outgoing: Outgoing) -> bytes:
        """Send once; give the raw bytes of the reply, as they came."""
        body = decoded(self.written.wire(outgoing))
        current, _ = await self.through(lambda opened: opened.ask(body))
        if b'"error"' in current.received[:_LOOKED_AT] and (error := error_of(decoded(current.received))):
            raise self.without_key_in(failure_of(200, current.headers or {}, current.received, within=error))
        return current.received

    async def through(
        self,
        ask: Callable[[Connection], Awaitable[Thing]],
        *,
        seconds: float | None = None,
        largest: int | None = _LARGEST_REPLY,
    ) -> tuple[Sending, Thing | None]:
        """Ask through the SDK; give what came, byte for byte, and what the SDK made of it, None where it could not.

        Raises:
            Failure: nothing came, or a status that is no success; our key stands in none of its texts.
        """
        opened, current, parsed = self.connection(), Sending(largest), None
        seconds = seconds or self.settings.timeout
        token = _CURRENT.set(current)
        try:
            async with asyncio.timeout(seconds):
                parsed = await ask(opened)
        except TimeoutError:
            current.failure = current.failure or _timed_out(f"after {seconds:g} s")
        except Exception:
            if current.failure is None and not current.status:
                raise
        finally:
            _CURRENT.reset(token)
        failure = current.failure
        if failure is None and not 200 <= current.status < 300:
            failure = failure_of(current.status, current.headers or {}, current.received)
        if failure is None:
            return current, parsed
        if failure.detail == _REFUSED and self.settings.patience is None and is_loopback(self.identity.base_url):
            failure.patience = _NOBODY_HERE
        raise self.without_key_in(failure)

    def read(self, raw: bytes) -> Reply:
        """Read the raw bytes of a reply."""
        return self.written.read(raw)

    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        opened, self.open = self.open, None
        if opened is not None and opened[0] is asyncio.get_running_loop():
            await opened[1].close()

    def connection(self) -> Connection:
        """Return the connections of the running event loop."""
        loop = asyncio.get_running_loop()
        if self.open is None or self.open[0] is not loop:
            self.secret = self.key()
            self.open = (loop, self.connect(self.secret))
        return self.open[1]

    def without_key(self, received: bytes) -> bytes:
        """Take our key out of what a server echoes, also where it writes characters of it as escapes.

        That is for what is stored and shown; what a reply says is read from the bytes as they came.
        """
        secret = self.secret.reveal() if self.secret else ""
        if not secret:
            return received
        clean = received.replace(secret.encode(), b"[key]")
        return re.sub(in_json(secret).encode(), b"[key]", clean) if b"\\u" in clean or b"\\/" in clean else clean

    def without_key_in(self, failure: Failure) -> Failure:
        """Take our key out of a failure."""
        failure.detail = self.without_key(failure.detail.encode()).decode()
        failure.args, failure.raw = (failure.detail,), self.without_key(failure.raw)
        return failure


def model_of(spec: Spec, example: str) -> str:
    """Take the model's name from a SPEC."""
    if not spec.target:
        raise UsageError(
            f"{spec.name} needs the name of a model", expected=f"{spec.name}:MODEL", hint=f"Write {example}."
        )
    return spec.target
