"""What the clients of far services share: keys, limits, connections of one event loop, sending once."""

import asyncio
import errno
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from culturekit.errors import UsageError
from culturekit.llm.client import Failure, Identity, Outgoing, Quota, Rate, Reply, Request
from culturekit.llm.clients.client_options import ServiceOptions
from culturekit.llm.clients.sending import LARGEST_REPLY, Sending, sent_once, verdict
from culturekit.llm.endpoints import is_loopback
from culturekit.llm.failures import failure_of
from culturekit.llm.json_values import decoded
from culturekit.llm.prices import parse_price, rate_of
from culturekit.llm.untrusted.redaction import Secret, in_json
from culturekit.registry import Spec

Thing = TypeVar("Thing")

REFUSED = os.strerror(errno.ECONNREFUSED).lower()
# Seconds after which a server on this machine is given up where nobody listens, unless the SPEC states a patience.
NOBODY_HERE = 60.0


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
        self.identity = identity
        self.settings = options
        self.key = key
        self.connect = connect
        self.written = written
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
        """Make sure that a request could be sent: the SDK and the key are there; nothing is sent.

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
        refused = verdict(current)
        if refused is not None:
            raise self.without_key_in(refused)
        return current.received

    async def through(
        self,
        ask: Callable[[Connection], Awaitable[Thing]],
        *,
        seconds: float | None = None,
        largest: int | None = LARGEST_REPLY,
    ) -> tuple[Sending, Thing | None]:
        """Ask through the SDK; give what came, byte for byte, and what the SDK made of it, None where it could not.

        Raises:
            Failure: nothing came, or a status that is no success; our key stands in none of its texts.
        """
        opened = self.connection()
        try:
            current, made = await sent_once(
                lambda: ask(opened), seconds=seconds or self.settings.timeout, largest=largest
            )
        except Failure as failure:
            if failure.detail == REFUSED and self.settings.patience is None and is_loopback(self.identity.base_url):
                failure.patience = NOBODY_HERE
            raise self.without_key_in(failure) from None
        if not 200 <= current.status < 300:
            raise self.without_key_in(failure_of(current.status, current.headers or {}, current.received))
        return current, made

    def read(self, raw: bytes) -> Reply:
        """Read the raw bytes of a reply."""
        return self.written.read(raw)

    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        opened, self.open = self.open, None
        if opened is not None and opened[0] is asyncio.get_running_loop():
            await opened[1].close()

    def connection(self) -> Connection:
        """Give the connections of the running event loop."""
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
        detail = self.without_key(failure.detail.encode()).decode()
        raw = self.without_key(failure.raw)
        failure.detail, failure.args, failure.raw = detail, (detail,), raw
        return failure


def model_of(spec: Spec, example: str) -> str:
    """Take the model's name from a SPEC."""
    if not spec.target:
        raise UsageError(
            f"{spec.name} needs the name of a model", expected=f"{spec.name}:MODEL", hint=f"Write {example}."
        )
    return spec.target
