"""A form served to browsers of this machine alone, under an address that nobody guesses."""

import hmac
import secrets
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson

from culturekit.annotate.answer_desk import AnswerDesk
from culturekit.errors import CultureKitError
from culturekit.storage.system_errors import system_error

__all__ = ["FormServer"]

LOOPBACK = "127.0.0.1"
HERE = (LOOPBACK, "localhost")
MOST_BYTES = 1_000_000


class FormServer(ThreadingHTTPServer):
    """Serves the form of a desk on loopback; `address` has the token without which nothing is told.

    `saved` hears of every answer that was kept.
    """

    daemon_threads = True

    def __init__(self, desk: AnswerDesk, *, port: int = 0) -> None:
        """Listen on a port, or on any that is free."""
        self.saved: Callable[[], None] = lambda: None
        self.desk, self.token = desk, secrets.token_urlsafe(24)
        super().__init__((LOOPBACK, port), FormHandler)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the library has it
        """Pass over browsers that went away."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """Where the form is."""
        return f"http://{LOOPBACK}:{self.server_address[1]}/{self.token}/"


class FormHandler(BaseHTTPRequestHandler):
    """Answers one request: the page and its pictures, who begins, and what is answered."""

    server: FormServer
    timeout = 60
    server_version = "culturekit"
    sys_version = ""

    def do_GET(self) -> None:
        """Give the page or a picture."""
        name = self.asked()
        if name == "":
            self.give(HTTPStatus.OK, self.server.desk.page.encode(), "text/html; charset=utf-8")
        elif name is not None and (picture := self.server.desk.pictures.get(name.removeprefix("pictures/"))):
            self.give(HTTPStatus.OK, picture.read_bytes(), "image/png")
        elif name is not None:
            self.refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def do_POST(self) -> None:
        """Hand out a sheet or take an answer."""
        desk = self.server.desk
        works: Mapping[str | None, Callable[[Any], dict[str, Any]]] = {"begin": desk.begin, "answer": desk.take}
        name = self.asked()
        if name is None:
            return
        length = self.headers.get("Content-Length", "")
        if name not in works or not length.isascii() or not length.isdigit() or int(length) > MOST_BYTES:
            self.refuse(HTTPStatus.BAD_REQUEST, "Nothing is taken here but answers.")
            return
        try:
            said = works[name](orjson.loads(self.rfile.read(int(length))))
        except (CultureKitError, orjson.JSONDecodeError) as error:
            self.refuse(HTTPStatus.BAD_REQUEST, str(error))
        except OSError as error:
            self.refuse(HTTPStatus.INSUFFICIENT_STORAGE, f"The answer is not saved: {system_error(error) or error}")
        else:
            self.give(HTTPStatus.OK, orjson.dumps(said), "application/json")
            if name == "answer":
                self.server.saved()

    def asked(self) -> str | None:
        """Say what is asked for below the token; without the token, or under another name of this machine, refuse."""
        token, _, name = self.path.partition("?")[0].removeprefix("/").partition("/")
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if host in HERE and hmac.compare_digest(token.encode(), self.server.token.encode()):
            return name
        if self.path == "/favicon.ico":
            self.give(HTTPStatus.NO_CONTENT, b"", "image/png")
            return None
        self.refuse(HTTPStatus.FORBIDDEN, "Open the address that `culturekit annotate serve` printed, all of it.")
        return None

    def refuse(self, status: HTTPStatus, why: str) -> None:
        """Answer in words."""
        self.give(status, why.encode(), "text/plain; charset=utf-8")

    def give(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        """Answer with content that no browser keeps, reads as something else or tells others about."""
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the library
        """Say nothing: the address has the token."""
