"""The two protocols under `/openai/v1` and `/google/v1beta`, and the paths for whoever runs a test."""

import asyncio
import hashlib
import logging
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from tests.llm.server import google_protocol, openai_protocol
from tests.llm.server.answers import CONTENT_TYPES, Model, picture_bytes
from tests.llm.server.error_replies import Refused, error_reply
from tests.llm.server.script import BODY_FAULTS, Script
from tests.llm.server.selling import connection_fault, damaged, encoded, refuse, refuses
from tests.llm.server.service import Exchange, Record, Service
from tests.llm.server.wire import Arrived, Connection, Departing, json_departing

_logger = logging.getLogger(__name__)
_NAME = r"/(?P<name>[^/:]+)"
_OPENAI, _GOOGLE, _UPLOAD = r"/openai/v1", r"/google/v1(?:beta|alpha)?", r"/google/upload/v1(?:beta|alpha)?/files"


class Route(NamedTuple):
    """One path. Endpoints that sell look up the row before faults are drawn."""

    method: str
    pattern: str
    operation: str
    endpoint: Callable[[Exchange], Departing]
    sells: bool = False

    @property
    def provider(self) -> Literal["openai", "google"]:
        return "openai" if self.pattern.startswith(_OPENAI) else "google"


_FINISH_UPLOAD = Route("POST", _UPLOAD, "files.upload", google_protocol.take_upload)
ROUTES = (
    Route(
        "POST",
        f"{_OPENAI}/chat/completions",
        "chat",
        partial(openai_protocol.answer, "/v1/chat/completions"),
        sells=True,
    ),
    Route("POST", f"{_GOOGLE}/models{_NAME}:generateContent", "generate", google_protocol.generate, sells=True),
    Route("POST", f"{_OPENAI}/responses", "responses", partial(openai_protocol.answer, "/v1/responses"), sells=True),
    Route(
        "POST",
        f"{_OPENAI}/images/generations",
        "images",
        partial(openai_protocol.answer, "/v1/images/generations"),
        sells=True,
    ),
    Route("POST", f"{_OPENAI}/files", "files.create", openai_protocol.create_file),
    Route("GET", f"{_OPENAI}/files{_NAME}/content", "files.content", openai_protocol.file_content),
    Route("DELETE", f"{_OPENAI}/files{_NAME}", "files.delete", openai_protocol.delete_file),
    Route("POST", f"{_OPENAI}/batches", "batches.create", openai_protocol.create_batch),
    Route("GET", f"{_OPENAI}/batches", "batches.list", openai_protocol.list_batches),
    Route("GET", f"{_OPENAI}/batches{_NAME}", "batches.get", openai_protocol.retrieve_batch),
    Route("POST", f"{_GOOGLE}/models{_NAME}:batchGenerateContent", "batches.create", google_protocol.create_batch),
    Route("GET", f"{_GOOGLE}/batches", "batches.list", google_protocol.list_batches),
    Route("GET", f"{_GOOGLE}/batches{_NAME}", "batches.get", google_protocol.get_batch),
    Route("GET", f"{_GOOGLE}/files{_NAME}:download", "files.content", google_protocol.download_file),
    Route("DELETE", f"{_GOOGLE}/files{_NAME}", "files.delete", google_protocol.delete_file),
    Route("POST", _UPLOAD, "files.create", google_protocol.start_upload),
)


def _lost(exchange: Exchange) -> Departing:
    raise Refused("not-found", f"Invalid URL ({exchange.arrived.method} {exchange.arrived.path})")


def _route_of(arrived: Arrived) -> tuple[Route, dict[str, str]]:
    for route in ROUTES:
        if route.method == arrived.method and (found := re.fullmatch(route.pattern, arrived.path)):
            uploading = route.pattern == _UPLOAD and "upload_id" in arrived.query
            return _FINISH_UPLOAD if uploading else route, found.groupdict()
    pattern = _GOOGLE if arrived.path.startswith("/google/") else _OPENAI
    return Route(arrived.method, pattern, "unknown", _lost, sells=True), {}


def handle(service: Service, arrived: Arrived) -> Departing:
    match arrived.method, arrived.path:
        case "GET", "/stats":
            return json_departing({**service.statistics.summary(), "busy": service.busy})
        case "GET", "/stats/records":
            value = msgspec.to_builtins(service.statistics.records)
            return Departing(200, [("content-type", "application/json")], encoded(value))
        case "PUT", "/script":
            try:
                service.follow(msgspec.json.decode(arrived.body, type=Script))
            except msgspec.DecodeError as error:
                return json_departing({"error": str(error)}, 400)
            return json_departing({})
        case "GET", path if path.startswith("/pictures/"):
            return _picture(service, arrived)
    route, groups = _route_of(arrived)
    record = service.begin(route.operation, route.provider)
    try:
        return _answered(Exchange(service, record, arrived, groups), route)
    except Exception as error:
        _logger.exception("%s %s", arrived.method, arrived.path)
        service.statistics.broken.append(f"{arrived.method} {arrived.path}: {error!r}")
        return service.finish(record, json_departing({"error": {"message": "the server is broken"}}, 599))


def _answered(exchange: Exchange, route: Route) -> Departing:
    """Let an endpoint answer; what it refuses becomes an error of the provider's."""
    service, record, body = exchange.service, exchange.record, exchange.arrived.body
    try:
        _check_key(exchange)
        if route.sells:
            return route.endpoint(exchange)
        record.digest = hashlib.sha256(body).hexdigest()
        fault = service.schedule.fault(record, body, asks=False)
        if fault is not None and refuses(fault):
            return refuse(service, record, fault)
        departing = route.endpoint(exchange)
    except Refused as refused:
        record.problem = str(refused)
        record.digest = record.digest or hashlib.sha256(body).hexdigest()
        return service.finish(record, error_reply(record.provider, refused))
    if fault is None:
        return service.finish(record, departing)
    if fault.kind in BODY_FAULTS:
        departing = damaged(departing.body, fault, record.provider)
    return service.finish(record, connection_fault(departing, fault), fault.kind)


def _check_key(exchange: Exchange) -> None:
    if exchange.record.operation == "files.upload":  # the place to send a file to was told to somebody with a key
        return
    headers, google = exchange.arrived.headers, exchange.record.provider == "google"
    key = headers.get("authorization", "").removeprefix("Bearer ").strip()
    if google:
        key = headers.get("x-goog-api-key") or exchange.arrived.query.get("key", "")
    if not key:
        raise Refused("forbidden" if google else "unauthorized", "You didn't provide an API key.")
    keys = exchange.service.script.keys
    if keys and key not in keys:
        raise Refused("key-invalid" if google else "unauthorized")


def _picture(service: Service, arrived: Arrived) -> Departing:
    """GET /pictures/{digest}/{place}; no key is asked for."""
    told = service.script.pictures
    service.fetches += 1
    if service.fetches <= told.busy:
        return Departing(503, [("retry-after", "0")], b"busy")
    if told.moves:
        return Departing(302, [("location", told.moves)], b"")
    if told.status != 200:
        return Departing(told.status, [], b"no")
    _, _, digest, place = arrived.path.split("/")
    content = picture_bytes(digest, int(place), told) + bytes(told.padding)
    kind = told.type or CONTENT_TYPES.get(told.form, "image/png")
    return Departing(200, [("content-type", kind)], content, cut="inside" if told.form == "torn" else "")


_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server somewhere on this machine; `service` is there when it runs in this process."""

    url: str
    service: Service | None = None
    process: "subprocess.Popen[str] | None" = None

    @property
    def openai_url(self) -> str:
        return f"{self.url}/openai/v1"

    @property
    def google_url(self) -> str:
        """The base URL for the google-genai SDK, to which it adds the version of the API."""
        return f"{self.url}/google"

    def stats(self) -> dict[str, Any]:
        return msgspec.json.decode(self._ask("GET", "/stats"), type=dict[str, Any])

    def settled(self) -> dict[str, Any]:
        """Give everything in sum, once all that those who asked have left behind is read, answered and counted.

        Whoever asked must have ended, or be waiting for nothing.
        """
        while (stats := self.stats())["busy"]:
            if self.process is not None and self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}")
            time.sleep(0.005)
        return stats

    def records(self) -> list[Record]:
        return msgspec.json.decode(self._ask("GET", "/stats/records"), type=list[Record])

    def follow(self, script: Script) -> None:
        self._ask("PUT", "/script", msgspec.json.encode(script))

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(self.url + path, data=body, method=method)
        with urllib.request.urlopen(request, timeout=600) as reply:
            content: bytes = reply.read()
        return content


async def serve(service: Service, port: int) -> asyncio.Server:
    listening = socket.create_server(("127.0.0.1", port), backlog=1024)
    return await asyncio.get_running_loop().create_server(
        lambda: Connection(partial(handle, service), service.connections, service.work), sock=listening
    )


@contextmanager
def running_server(
    script: Script | None = None, *, model: Model | None = None, port: int = 0
) -> Iterator[RunningServer]:
    service = Service(script or Script(), model)
    started: threading.Event = threading.Event()
    held: dict[str, Any] = {}

    async def main() -> None:
        server = await serve(service, port)
        held["port"] = server.sockets[0].getsockname()[1]
        held["loop"], held["stop"] = asyncio.get_running_loop(), asyncio.Event()
        started.set()
        await held["stop"].wait()
        server.close()
        for connection in list(service.connections):
            connection.abort()
        await asyncio.sleep(0)

    thread = threading.Thread(target=asyncio.run, args=(main(),), name="model server", daemon=True)
    thread.start()
    if not started.wait(600):
        raise RuntimeError("the server did not start within ten minutes")
    try:
        yield RunningServer(f"http://127.0.0.1:{held['port']}", service)
    finally:
        held["loop"].call_soon_threadsafe(held["stop"].set)
        thread.join()


@contextmanager
def kept_port() -> Iterator[int]:
    """Keep a port of loopback for servers that come one after the other: nobody else is given it in between."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        yield int(kept.getsockname()[1])


@contextmanager
def server_process(script: Script | None = None, *, model: str = "", port: int = 0) -> Iterator[RunningServer]:
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "script.json"
        command = [sys.executable, "-m", "tests.llm.server", "--port", str(port)]
        if script is not None:
            written.write_bytes(msgspec.json.encode(script))
            command += ["--script", str(written)]
        command += ["--model", model] if model else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT)
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"the server ended with {process.wait()} before it said its address")
            yield RunningServer(url, process=process)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
