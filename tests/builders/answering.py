"""A server on loopback that answers GET as a test tells it, and remembers what it was asked."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Said:
    """A reply; `length` may lie about its body."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None


@dataclass(slots=True)
class Answering:
    """What answers, at which URL, and what was asked: path and headers, names of headers in small letters."""

    answer: Callable[[str], Said]
    url: str = ""
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


@contextmanager
def answering(answer: Callable[[str], Said]) -> Iterator[Answering]:
    """Answer for a block."""
    told = Answering(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
            said = told.answer(self.path)
            self.send_response(said.status)
            length = len(said.body) if said.length is None else said.length
            headers = {"Content-Type": "application/json", "Content-Length": str(length), **said.headers}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said.body)

        def log_message(self, *parts: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
