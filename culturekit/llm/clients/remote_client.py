"""What the clients of far services share: keys, limits, connections of one event loop, sending once."""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from culturekit.errors import UsageError
from culturekit.llm.client import Failure, Identity, Outgoing, Quota, Rate, Reply, Request
from culturekit.llm.clients.client_options import ServiceOptions
from culturekit.llm.clients.sending import sent_once, verdict
from culturekit.llm.money.prices import parse_price, rate_of
from culturekit.llm.untrusted.redaction import Secret, in_json
from culturekit.registry import Spec

__all__ = ["Connection", "RemoteClient", "WireFormat", "model_of"]


class Connection(Protocol):
    """An SDK that is ready to post to one endpoint."""

    async def post(self) -> object:
        """Post once, without trying again; the content is that of the current sending."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


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
        """Send once; give the raw bytes of the reply."""
        content = self.written.wire(outgoing)
        connection = self.connection()
        try:
            current = await sent_once(content, connection.post, seconds=self.settings.timeout)
        except Failure as failure:
            failure.raw = self.without_key(failure.raw)
            raise
        current.received = self.without_key(current.received)
        refused = verdict(current)
        if refused is not None:
            raise refused
        return current.received

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
        """Take our key out of what a server echoes, also where it writes characters of it as escapes."""
        secret = self.secret.reveal() if self.secret else ""
        if not secret:
            return received
        clean = received.replace(secret.encode(), b"[key]")
        return re.sub(in_json(secret).encode(), b"[key]", clean) if b"\\u" in clean or b"\\/" in clean else clean


def model_of(spec: Spec, example: str) -> str:
    """Take the model's name from a SPEC."""
    if not spec.target:
        raise UsageError(
            f"{spec.name} needs the name of a model", expected=f"{spec.name}:MODEL", hint=f"Write {example}."
        )
    return spec.target
