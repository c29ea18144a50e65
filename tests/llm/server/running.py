"""Running a server: in a thread of this process, or in a process of its own that outlives killed clients."""

import asyncio
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tests.llm.server.answers import Model
from tests.llm.server.application import handle
from tests.llm.server.script import Script
from tests.llm.server.service import Service
from tests.llm.server.statistics import Record
from tests.llm.server.wire import Connection

_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server somewhere on this machine; `service` is there when it runs in this process."""

    url: str
    service: Service | None = None
    process: "subprocess.Popen[str] | None" = None

    @property
    def openai_url(self) -> str:
        """The base URL for the openai SDK."""
        return f"{self.url}/openai/v1"

    @property
    def google_url(self) -> str:
        """The base URL for the google-genai SDK, to which it adds the version of the API."""
        return f"{self.url}/google"

    def stats(self) -> dict[str, Any]:
        """Give everything in sum."""
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
        """Give the requests received so far."""
        return msgspec.json.decode(self._ask("GET", "/stats/records"), type=list[Record])

    def follow(self, script: Script) -> None:
        """Let it follow another script from now on; its time and attempts start anew, its statistics go on."""
        self._ask("PUT", "/script", msgspec.json.encode(script))

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(self.url + path, data=body, method=method)
        with urllib.request.urlopen(request, timeout=600) as reply:
            content: bytes = reply.read()
        return content


async def serve(service: Service, port: int) -> asyncio.Server:
    """Listen on loopback."""
    listening = socket.create_server(("127.0.0.1", port), backlog=1024)
    return await asyncio.get_running_loop().create_server(
        lambda: Connection(partial(handle, service), service.connections, service.work), sock=listening
    )


@contextmanager
def running_server(
    script: Script | None = None, *, model: Model | None = None, port: int = 0
) -> Iterator[RunningServer]:
    """Serve for a block, in a thread of this process."""
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
    """Serve for a block, in a process of its own; `model` is `module:function`."""
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
