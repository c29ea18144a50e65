"""What comes in and what goes out on the wire, apart from sockets."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qsl

import orjson

# Where a connection is cut: nowhere; before anything is done; inside the reply; once the work is done, unsaid.
Cut: TypeAlias = Literal["", "before", "inside", "after"]


@dataclass(frozen=True, slots=True)
class Arrived:
    """One HTTP request, whole. Header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


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
    return Departing(status, [("content-type", "application/json"), *(headers or [])], orjson.dumps(value))


_REASONS = {status.value: status.phrase for status in HTTPStatus}
_NO_BODY = b"\r\n\r\n"
_MOST_HEAD = 64 * 1024


class Connection(asyncio.Protocol):
    """Reads requests one after the other and performs what the handler decides for each."""

    def __init__(
        self, handle: Callable[[Arrived], Departing], open_: set["Connection"], work: set["asyncio.Task[None]"]
    ) -> None:
        self._handle, self._open, self._work = handle, open_, work
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._performing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self)
        self._transport = None
        if self._performing is not None:
            self._performing.cancel()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._performing is None:
            self._take()

    def _take(self) -> None:
        """Answer the requests that are whole, until one takes time."""
        while self._performing is None and self._transport is not None:
            try:
                arrived = self._parse()
            except ValueError:
                self._transport.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                self._transport.close()
                return
            if arrived is None:
                return
            departing = self._handle(arrived)
            if departing.delay == 0 and departing.pieces is None and not departing.cut:
                self._send_whole(departing)
            else:
                self._performing = asyncio.get_running_loop().create_task(self._perform(departing))

    def _parse(self) -> Arrived | None:
        end = self._buffer.find(_NO_BODY)
        if end < 0:
            if len(self._buffer) > _MOST_HEAD:
                raise ValueError("a head without end")
            return None
        first, *lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        used = end + 4 + int(headers.get("content-length", "0"))
        if len(self._buffer) < used:
            return None
        body = bytes(self._buffer[end + 4 : used])
        del self._buffer[:used]
        path, _, query = target.partition("?")
        return Arrived(method, path, dict(parse_qsl(query, keep_blank_values=True)), headers, body)

    def _send_whole(self, departing: Departing) -> None:
        assert self._transport is not None
        if departing.on_work is not None:
            departing.on_work()
        self._transport.write(_head(departing, len(departing.body)) + departing.body)
        if departing.on_sent is not None:
            departing.on_sent()

    async def _perform(self, departing: Departing) -> None:
        sent = False
        try:
            if departing.cut == "before":
                self.abort()
                return
            if departing.delay is None:
                await asyncio.get_running_loop().create_future()
            # the work goes on when the client has left: its tokens are made and billed all the same
            work = asyncio.create_task(_work(departing))
            self._work.add(work)
            work.add_done_callback(self._work.discard)
            await asyncio.shield(work)
            sent = await self._deliver(departing)
        finally:
            if not sent and departing.on_left is not None:
                departing.on_left()
        self._performing = None
        self._take()

    async def _deliver(self, departing: Departing) -> bool:
        transport = self._transport
        if transport is None or departing.cut == "after":
            self.abort()
            return False
        cut, body = departing.cut == "inside", departing.body
        if departing.pieces is None:
            transport.write(_head(departing, len(body)) + (body[: len(body) // 2] if cut else body))
        else:
            transport.write(_head(departing, None))
            for piece in departing.pieces[: len(departing.pieces) // 2] if cut else [*departing.pieces, b""]:
                if transport.is_closing():
                    return False
                transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                if departing.pace and piece:
                    await asyncio.sleep(departing.pace)
        if cut:
            await asyncio.sleep(0.005)
            self.abort()
            return False
        if departing.on_sent is not None:
            departing.on_sent()
        return True


async def _work(departing: Departing) -> None:
    if departing.delay:
        await asyncio.sleep(departing.delay)
    if departing.on_work is not None:
        departing.on_work()


def _head(departing: Departing, length: int | None) -> bytes:
    lines = [
        f"HTTP/1.1 {departing.status} {_REASONS.get(departing.status, 'Unknown')}",
        f"date: {_date(int(time.time()))}",
    ]
    lines += [f"{name}: {value}" for name, value in departing.headers]
    lines.append("transfer-encoding: chunked" if length is None else f"content-length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


HEADER = b"HTTP/1.1 200 OK\r\nContent-Type: "
DROPS = 400  # after so many bytes the connection is closed, so that a caller who waits for ever fails and does not hang


@contextlib.contextmanager
def dripping(begin: bytes) -> Iterator[str]:
    """Send `begin` at once to everybody who asks, then a byte every fiftieth of a second; give the URL."""
    ended = threading.Event()

    def serve(caller: socket.socket) -> None:
        with caller, contextlib.suppress(OSError):
            caller.recv(65_536)
            caller.sendall(begin)
            for _ in range(DROPS):
                if ended.wait(0.02):
                    return
                caller.sendall(b"x")

    def accept(listener: socket.socket) -> None:
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        thread = threading.Thread(target=accept, args=[listener])
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()
