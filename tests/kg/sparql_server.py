"""A SPARQL 1.1 endpoint on loopback, rdflib or Oxigraph behind it, that can be made to misbehave."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pyoxigraph
from rdflib import Graph

__all__ = ["Answer", "Endpoint", "serving"]


@dataclass(frozen=True)
class Answer:
    """What the server does instead of answering the next query."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    hang_up: bool = False


@dataclass
class Endpoint:
    """A running server: what it was asked, and what it is going to do wrong, in turn."""

    graph: Graph
    oxigraph: bool = False
    url: str = ""
    queries: list[str] = field(default_factory=list, repr=False)
    agents: list[str] = field(default_factory=list, repr=False)
    connections: set[tuple[str, int]] = field(default_factory=set)
    faults: list[Answer | None] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    loaded: tuple[Graph, pyoxigraph.Store] | None = None

    def answer(self, query: str) -> bytes:
        """Let the engine answer, with no extension of its own."""
        with self.lock:
            if not self.oxigraph:
                return self.graph.query(query).serialize(format="json") or b""
            if self.loaded is None or self.loaded[0] is not self.graph:
                store = pyoxigraph.Store()
                store.load(self.graph.serialize(format="nt", encoding="utf-8"), format=pyoxigraph.RdfFormat.N_TRIPLES)
                self.loaded = self.graph, store
            found = self.loaded[1].query(query)
        assert isinstance(found, pyoxigraph.QuerySolutions)
        return found.serialize(format=pyoxigraph.QueryResultsFormat.JSON) or b""


@contextmanager
def serving(graph: Graph, *, oxigraph: bool = False) -> Iterator[Endpoint]:
    """Serve a graph for a block."""
    endpoint = Endpoint(graph, oxigraph)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            query = parse_qs(body.decode())["query"][0]
            endpoint.queries.append(query)
            endpoint.agents.append(self.headers["User-Agent"])
            endpoint.connections.add(self.client_address)
            fault = endpoint.faults.pop(0) if endpoint.faults else None
            if fault is None:
                found = endpoint.answer(query)
                fault = Answer(200, (("Content-Type", "application/sparql-results+json"),), found)
            if fault.hang_up:
                self.close_connection = True
                return
            self.send_response(fault.status)
            for name, value in fault.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(fault.body)))
            self.end_headers()
            self.wfile.write(fault.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the standard library
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint.url = f"http://127.0.0.1:{server.server_port}/sparql"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def empty_result() -> bytes:
    """Give a result without rows."""
    return json.dumps({"head": {"vars": []}, "results": {"bindings": []}}).encode()
