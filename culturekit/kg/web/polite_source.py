"""A web API that is asked one question at a time, not too fast, by somebody who says who they are."""

import http.client
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from types import MappingProxyType
from typing import NamedTuple, TypeVar
from urllib.parse import SplitResult, urljoin

import msgspec

from culturekit.errors import UpstreamUnavailable
from culturekit.kg.web.patience import KEPT, Passing, Patience
from culturekit.kg.web.pinned_connection import address_of, check_url, connect_to, names_this_machine, retry_after
from culturekit.stages.offline import check_sending
from culturekit.version import VERSION

__all__ = ["PoliteSource"]

MAX_BYTES = 2_000_000
MAX_REDIRECTS = 3
PASSING = {429, 500, 502, 503, 504}
MOVED = {301, 302, 303, 307, 308}

NOTHING: Mapping[int, bytes] = MappingProxyType({})

Answer = TypeVar("Answer")


class Reply(NamedTuple):
    """A reply: its status, its kind as the server names it, and its body."""

    status: int
    kind: str
    body: bytes

    @property
    def charset(self) -> str:
        """The letters that the server says the body is written in; empty where it says nothing."""
        message = Message()
        message["Content-Type"] = self.kind
        return message.get_content_charset("")


@dataclass(slots=True)
class PoliteSource:
    """Asks one service. `secrets` are headers that never follow a redirect and never stand in a message.

    A server that sends a byte now and then is cut off after `longest` seconds, a reply after `largest` bytes.
    """

    base: str
    contact: str
    per_second: float
    secrets: Mapping[str, Callable[[], str]] = field(default_factory=dict, repr=False)
    timeout: float = 30.0
    longest: float = 120.0
    largest: int = MAX_BYTES
    hint: str = KEPT
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    asked: int = 0
    last: float | None = None

    def __post_init__(self) -> None:
        """Refuse what could never be asked before anything is sent."""
        check_url(self.base)

    def ask(self, path: str, answer: type[Answer], *, missing: Answer | None = None) -> Answer:
        """Answer a GET below the base URL; `missing` stands for what the service does not know (404)."""
        url = f"{self.base.rstrip('/')}/{path}" if path and not path.startswith("?") else f"{self.base}{path}"

        def read(reply: Reply) -> Answer:
            return missing if reply.status == 404 and missing is not None else self.read(reply, answer)

        return self.tried(url, read, ("json",))

    def page(
        self,
        url: str,
        *,
        kinds: tuple[str, ...],
        instead: Mapping[int, bytes] = NOTHING,
        check: Callable[[str], object] = check_url,
    ) -> Reply:
        """Give a page of one of some kinds; `instead` stands for answers of a status.

        Wherever the page has moved, `check` is asked first whether that may be read too.
        """

        def read(reply: Reply) -> Reply:
            if reply.status in instead:
                return reply._replace(body=instead[reply.status])
            self.check_status(reply)
            return reply

        return self.tried(url, read, kinds, check)

    def tried(
        self,
        url: str,
        read: Callable[[Reply], Answer],
        kinds: tuple[str, ...],
        check: Callable[[str], object] = check_url,
    ) -> Answer:
        """Ask until an answer comes that can be read, or it has been tried often enough."""
        how = Patience("the service", self.base, self.hint, first=1.0, pause=self.pause)
        return how.ask(lambda: read(self.follow(url, kinds, check)))

    def read(self, reply: Reply, answer: type[Answer]) -> Answer:
        """Read the body of a good reply."""
        self.check_status(reply)
        try:
            return msgspec.json.decode(reply.body, type=answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Passing(f"the reply is not what the service documents ({error})") from error

    def check_status(self, reply: Reply) -> None:
        """Say of a reply that is not good that it was refused."""
        if reply.status != 200:
            said = " ".join(reply.body[:2000].decode("utf-8", "replace").split())[:300]
            raise UpstreamUnavailable(
                f"the service refused (HTTP {reply.status})", where=self.base, found=said, hint=self.hint
            )

    def follow(self, url: str, kinds: tuple[str, ...], check: Callable[[str], object]) -> Reply:
        """Send a GET, wherever the page has moved: elsewhere only to a public address, and without secrets."""
        at, home = url, origin(check_url(url))
        for _ in range(MAX_REDIRECTS + 1):
            parts = check_url(at)
            status, headers, body = self.send(parts, kinds, home=origin(parts) == home)
            if status in PASSING:
                raise Passing(f"HTTP {status}", retry_after(headers.get("Retry-After", "")))
            if status not in MOVED:
                kind = headers.get("Content-Type", "")
                check_kind(status, kind, kinds)
                return Reply(status, kind, body)
            location = headers.get("Location", "")
            target = urljoin(at, location)
            if not location or (at.startswith("https:") and not target.startswith("https:")):
                raise UpstreamUnavailable("the service redirects to nowhere safe", where=self.base, found=location)
            if origin(moved := check_url(target)) != home:
                address_of(moved, may_be_here=False)
            check(target)
            at = target
        raise UpstreamUnavailable("the service redirects again and again", where=self.base)

    def send(self, parts: SplitResult, kinds: tuple[str, ...], *, home: bool) -> tuple[int, Mapping[str, str], bytes]:
        """Send one request, not sooner after the last one than agreed."""
        check_sending(self.base)
        self.keep_pace()
        agent = f"culturekit/{VERSION}" + (f" ({self.contact})" if self.contact else "")
        headers = {"Accept": "application/json" if "json" in kinds else "text/html, text/plain", "User-Agent": agent}
        if home:
            headers |= {name: reveal() for name, reveal in self.secrets.items()}
        connection = connect_to(parts, self.timeout, may_be_here=home and names_this_machine(parts.hostname or ""))
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.asked += 1
        connection.end_within(self.longest)
        try:
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
            body = self.read_to_end(response)
        except (OSError, http.client.HTTPException) as error:
            raise Passing(f"the connection failed ({str(error) or type(error).__name__})") from error
        finally:
            connection.close()
        return response.status, {name.title(): value for name, value in response.getheaders()}, body

    def read_to_end(self, response: http.client.HTTPResponse) -> bytes:
        """Read a reply to its end, within a size."""
        chunks, size = [], 0
        while chunk := response.read1(65_536):
            chunks.append(chunk)
            size += len(chunk)
            if size > self.largest:
                raise UpstreamUnavailable("the reply is too large", where=self.base, expected=f"{self.largest:,} bytes")
        if response.length:
            raise Passing(f"the reply broke off {response.length:,} bytes before its end")
        return b"".join(chunks)

    def keep_pace(self) -> None:
        """Wait until the next question may be asked."""
        now = self.clock()
        if self.last is not None and (ahead := self.last + 1 / self.per_second - now) > 0:
            self.pause(ahead)
            now += ahead
        self.last = now


def origin(parts: SplitResult) -> tuple[str, str, int | None]:
    """Tell one server from another."""
    return parts.scheme, (parts.hostname or "").lower(), parts.port


def check_kind(status: int, kind: str, kinds: tuple[str, ...]) -> None:
    """Refuse a page of a proxy or a login in place of data."""
    if status == 200 and kind and not any(word in kind.lower() for word in kinds):
        wanted = " or ".join(word.upper() for word in kinds)
        raise Passing(f"the reply is {kind.partition(';')[0].strip()}, not {wanted}")
