"""The two protocols under `/openai/v1` and `/google/v1beta`, and the paths for whoever runs a test."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from tests.llm.server import (
    google_batches,
    google_files,
    google_generate,
    openai_batches,
    openai_chat,
    openai_files,
    openai_image_making,
)
from tests.llm.server.error_replies import Refused
from tests.llm.server.exchange import Endpoint, Exchange, answered
from tests.llm.server.pictures import CONTENT_TYPES, picture_bytes
from tests.llm.server.script import script_from_json
from tests.llm.server.selling import encoded
from tests.llm.server.service import Service
from tests.llm.server.wire import Arrived, Departing, json_departing


@dataclass(frozen=True, slots=True)
class Route:
    """One path. Endpoints that sell look up the row before faults are drawn."""

    method: str
    pattern: re.Pattern[str]
    operation: str
    provider: Literal["openai", "google"]
    endpoint: Endpoint
    sells: bool = False


def _openai(method: str, path: str, operation: str, endpoint: Endpoint, *, sells: bool = False) -> Route:
    return Route(method, re.compile(r"/openai/v1" + path), operation, "openai", endpoint, sells)


def _google(method: str, path: str, operation: str, endpoint: Endpoint, *, sells: bool = False) -> Route:
    return Route(method, re.compile(r"/google/v1(?:beta|alpha)?" + path), operation, "google", endpoint, sells)


_ID = r"/(?P<name>[^/:]+)"
_UPLOAD = re.compile(r"/google/upload/v1(?:beta|alpha)?/files")

ROUTES = (
    _openai("POST", "/chat/completions", "chat", openai_chat.chat, sells=True),
    _google("POST", f"/models{_ID}:generateContent", "generate", google_generate.generate, sells=True),
    _openai("POST", "/responses", "responses", openai_chat.respond, sells=True),
    _openai("POST", "/images/generations", "images", openai_image_making.make_image, sells=True),
    _openai("POST", "/files", "files.create", openai_files.create_file),
    _openai("GET", f"/files{_ID}/content", "files.content", openai_files.file_content),
    _openai("DELETE", f"/files{_ID}", "files.delete", openai_files.delete_file),
    _openai("POST", "/batches", "batches.create", openai_batches.create_batch),
    _openai("GET", "/batches", "batches.list", openai_batches.list_batches),
    _openai("GET", f"/batches{_ID}", "batches.get", openai_batches.retrieve_batch),
    _google("POST", f"/models{_ID}:batchGenerateContent", "batches.create", google_batches.create_batch),
    _google("GET", "/batches", "batches.list", google_batches.list_batches),
    _google("GET", f"/batches{_ID}", "batches.get", google_batches.get_batch),
    _google("GET", f"/files{_ID}:download", "files.content", google_files.download_file),
    _google("DELETE", f"/files{_ID}", "files.delete", google_files.delete_file),
    Route("POST", _UPLOAD, "files.create", "google", google_files.start_upload),
)
_FINISH_UPLOAD = Route("POST", _UPLOAD, "files.upload", "google", google_files.take_upload)


def find_route(method: str, path: str, query: Mapping[str, str]) -> tuple[Route, dict[str, str]] | None:
    """Find who answers, and the parts of the path that have names; None where nobody does."""
    for route in ROUTES:
        if route.method == method and (found := route.pattern.fullmatch(path)):
            uploading = route.endpoint is google_files.start_upload and "upload_id" in query
            return _FINISH_UPLOAD if uploading else route, found.groupdict()
    return None


def give_picture(service: Service, arrived: Arrived) -> Departing:
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
    departing = Departing(200, [("content-type", kind)], content)
    departing.cut = "inside" if told.form == "torn" else ""
    return departing


_logger = logging.getLogger(__name__)


class Application:
    """Finds who answers a request."""

    def __init__(self, service: Service) -> None:
        """Answer for a service."""
        self.service = service

    def handle(self, arrived: Arrived) -> Departing:
        """Answer one request."""
        found = find_route(arrived.method, arrived.path, arrived.query)
        if found is None:
            return self._own(arrived)
        route, groups = found
        record = self.service.begin(arrived, route.operation, route.provider)
        exchange = Exchange(self.service, record, arrived, groups)
        try:
            return answered(exchange, route.endpoint, sells=route.sells)
        except Exception as error:
            _logger.exception("%s %s", arrived.method, arrived.path)
            self.service.statistics.broken.append(f"{arrived.method} {arrived.path}: {error!r}")
            return self.service.finish(record, json_departing({"error": {"message": "the server is broken"}}, 599))

    def _own(self, arrived: Arrived) -> Departing:
        match arrived.method, arrived.path:
            case "GET", "/stats":
                return json_departing({**self.service.statistics.summary(), "busy": self.service.busy})
            case "GET", "/stats/records":
                since = int(arrived.query.get("since", "0"))
                return _json(msgspec.to_builtins(self.service.statistics.records[since:]))
            case "GET", "/script":
                return _json(msgspec.to_builtins(self.service.script))
            case "GET", path if path.startswith("/pictures/"):
                return give_picture(self.service, arrived)
            case "PUT", "/script":
                return self._follow(arrived.body)
            case _:
                return self._lost(arrived)

    def _follow(self, body: bytes) -> Departing:
        try:
            self.service.follow(script_from_json(body))
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            return json_departing({"error": str(error)}, 400)
        return json_departing({})

    def _lost(self, arrived: Arrived) -> Departing:
        """Answer for a path that neither protocol has, in the words of the one it was meant for."""
        provider = "google" if arrived.path.startswith("/google/") else "openai"
        record = self.service.begin(arrived, "unknown", provider)

        def refuse(exchange: Exchange) -> Departing:
            raise Refused("not-found", f"Invalid URL ({arrived.method} {arrived.path})")

        return answered(Exchange(self.service, record, arrived, {}), refuse, sells=True)


def _json(value: Any) -> Departing:
    return Departing(200, [("content-type", "application/json")], encoded(value))
