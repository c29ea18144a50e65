"""The two protocols under `/openai/v1` and `/google/v1beta`, and the paths for whoever runs a test."""

import hashlib
import logging
import re
from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from tests.llm.server import google_batches, google_generate, openai_batches, openai_chat, openai_image_making
from tests.llm.server.error_replies import Refused, error_reply
from tests.llm.server.pictures import CONTENT_TYPES, picture_bytes
from tests.llm.server.script import BODY_FAULTS, Script
from tests.llm.server.selling import connection_fault, damaged, encoded, refuse, refuses
from tests.llm.server.service import Exchange, Service
from tests.llm.server.wire import Arrived, Departing, json_departing

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
        """Whose path it is."""
        return "openai" if self.pattern.startswith(_OPENAI) else "google"


_FINISH_UPLOAD = Route("POST", _UPLOAD, "files.upload", google_batches.take_upload)
ROUTES = (
    Route("POST", f"{_OPENAI}/chat/completions", "chat", openai_chat.chat, sells=True),
    Route("POST", f"{_GOOGLE}/models{_NAME}:generateContent", "generate", google_generate.generate, sells=True),
    Route("POST", f"{_OPENAI}/responses", "responses", openai_chat.respond, sells=True),
    Route("POST", f"{_OPENAI}/images/generations", "images", openai_image_making.make_image, sells=True),
    Route("POST", f"{_OPENAI}/files", "files.create", openai_batches.create_file),
    Route("GET", f"{_OPENAI}/files{_NAME}/content", "files.content", openai_batches.file_content),
    Route("DELETE", f"{_OPENAI}/files{_NAME}", "files.delete", openai_batches.delete_file),
    Route("POST", f"{_OPENAI}/batches", "batches.create", openai_batches.create_batch),
    Route("GET", f"{_OPENAI}/batches", "batches.list", openai_batches.list_batches),
    Route("GET", f"{_OPENAI}/batches{_NAME}", "batches.get", openai_batches.retrieve_batch),
    Route("POST", f"{_GOOGLE}/models{_NAME}:batchGenerateContent", "batches.create", google_batches.create_batch),
    Route("GET", f"{_GOOGLE}/batches", "batches.list", google_batches.list_batches),
    Route("GET", f"{_GOOGLE}/batches{_NAME}", "batches.get", google_batches.get_batch),
    Route("GET", f"{_GOOGLE}/files{_NAME}:download", "files.content", google_batches.download_file),
    Route("DELETE", f"{_GOOGLE}/files{_NAME}", "files.delete", google_batches.delete_file),
    Route("POST", _UPLOAD, "files.create", google_batches.start_upload),
)


def _lost(exchange: Exchange) -> Departing:
    """Answer for a path that neither protocol has, in the words of the one it was meant for."""
    raise Refused("not-found", f"Invalid URL ({exchange.arrived.method} {exchange.arrived.path})")


def _route_of(arrived: Arrived) -> tuple[Route, dict[str, str]]:
    for route in ROUTES:
        if route.method == arrived.method and (found := re.fullmatch(route.pattern, arrived.path)):
            uploading = route.pattern == _UPLOAD and "upload_id" in arrived.query
            return _FINISH_UPLOAD if uploading else route, found.groupdict()
    pattern = _GOOGLE if arrived.path.startswith("/google/") else _OPENAI
    return Route(arrived.method, pattern, "unknown", _lost, sells=True), {}


def handle(service: Service, arrived: Arrived) -> Departing:
    """Answer one request."""
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
    """Let an endpoint answer; what it refuses becomes an error of the provider's.

    Endpoints that sell know the row before they ask for a fault; all others can fail at once.
    """
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
