"""Running a server: in a thread of this process, or in a process of its own."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.llm.server.answers import Model
from tests.llm.server.application import Application
from tests.llm.server.connection import Connection
from tests.llm.server.script import Script
from tests.llm.server.service import Service
from tests.llm.server.statistics import Record

__all__ = ["RunningServer", "running_server", "serve"]


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that runs in a thread of this process."""

    url: str
    service: Service

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
        return self.service.statistics.summary()

    def records(self) -> list[Record]:
        """Give every request received so far."""
        return list(self.service.statistics.records)


async def serve(service: Service, port: int, ready: "asyncio.Future[int] | None" = None) -> asyncio.Server:
    """Listen on loopback."""
    application = Application(service)
    open_: set[Connection] = set()
    loop = asyncio.get_running_loop()
    listening = socket.create_server(("127.0.0.1", port), backlog=1024)
    return await loop.create_server(lambda: Connection(application.handle, service.now, open_), sock=listening)


@contextmanager
def running_server(
    script: Script | None = None, *, model: Model | None = None, port: int = 0
) -> Iterator[RunningServer]:
    """Serve for a block, in a thread."""
    service = Service(script or Script(), model)
    started: threading.Event = threading.Event()
    found: dict[str, Any] = {}

    async def main() -> None:
        server = await serve(service, port)
        found["port"] = server.sockets[0].getsockname()[1]
        found["loop"] = asyncio.get_running_loop()
        found["stop"] = asyncio.Event()
        started.set()
        await found["stop"].wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(main(),), name="model server", daemon=True)
    thread.start()
    started.wait()
    try:
        yield RunningServer(f"http://127.0.0.1:{found['port']}", service)
    finally:
        found["loop"].call_soon_threadsafe(found["stop"].set)
        thread.join()
