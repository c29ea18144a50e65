"""A server on loopback that answers GET as a test tells it, and remembers what it was asked."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from culturekit.kg.polite_source import Pace
from tests.loopback import served


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


def slept(per_second: float, waits: list[float]) -> Pace:
    """A pace on a clock that only its pauses move; it remembers them."""
    now = [0.0]

    def pause(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    return Pace(per_second, pause=pause, clock=lambda: now[0])


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

    with served(Handler) as told.url:
        yield told
