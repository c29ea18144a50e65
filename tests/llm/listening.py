"""A server on loopback that keeps what it is sent, byte for byte, and says what it is told."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.loopback import served


@dataclass(frozen=True, slots=True)
class Heard:
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Listening:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    heard: list[Heard] = field(default_factory=list)
    url: str = ""


@contextmanager
def listening() -> Iterator[Listening]:
    told = Listening()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            told.heard.append(Heard(self.path, {k.lower(): v for k, v in self.headers.items()}, content))
            self.send_response(told.status)
            for name, value in {"Content-Length": str(len(told.body)), **told.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(told.body)

        def log_message(self, *parts: object) -> None:
            """Say nothing."""

    with served(Handler) as told.url:
        yield told
