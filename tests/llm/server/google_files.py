"""Gemini's files: uploaded in one or more pieces by the resumable protocol, read, deleted."""

import base64
import hashlib
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.llm.server.error_replies import Refused
from tests.llm.server.exchange import Exchange, json_body
from tests.llm.server.jobs import StoredFile
from tests.llm.server.wire import Departing, json_departing

_ENDS_AFTER = timedelta(hours=48)


def start_upload(exchange: Exchange) -> Departing:
    """POST /upload/.../files: say what comes, and be told where to send it."""
    headers, storage = exchange.arrived.headers, exchange.service.storage
    if headers.get("x-goog-upload-protocol") != "resumable" or headers.get("x-goog-upload-command") != "start":
        raise Refused("bad-request", "Uploads start with X-Goog-Upload-Protocol: resumable and the command start.")
    size = headers.get("x-goog-upload-header-content-length", "")
    if not size.isdigit():
        raise Refused("bad-request", "X-Goog-Upload-Header-Content-Length must say how many bytes come.")
    body = json_body(exchange)
    told = body.get("file") or {}
    name = told.get("name") or storage.new_name("files/")
    upload = storage.new_name("upload-")
    media = headers.get("x-goog-upload-header-content-type") or "application/octet-stream"
    display = told.get("displayName") or told.get("display_name") or ""
    storage.uploads[upload] = StoredFile(name, "google", display, media, b"", int(time.time()), int(size))
    host = headers.get("host", "127.0.0.1")
    url = f"http://{host}/google/upload/v1beta/files?upload_id={upload}&upload_protocol=resumable"
    return json_departing({}, headers=[("x-goog-upload-url", url), ("x-goog-upload-status", "active")])


def take_upload(exchange: Exchange) -> Departing:
    """POST to the place told: a piece of the file, the last one with the word finalize."""
    headers, storage = exchange.arrived.headers, exchange.service.storage
    upload = exchange.arrived.query["upload_id"]
    stored = storage.uploads.get(upload)
    if stored is None:
        raise Refused("not-found", "There is no such upload.")
    if headers.get("x-goog-upload-offset") != str(len(stored.content)):
        raise Refused("bad-request", f"The upload goes on at offset {len(stored.content)}.")
    stored.content += exchange.arrived.body
    if "finalize" not in headers.get("x-goog-upload-command", ""):
        return json_departing({}, headers=[("x-goog-upload-status", "active")])
    if len(stored.content) != stored.announced:
        raise Refused("bad-request", f"Announced were {stored.announced} bytes, {len(stored.content)} came.")
    del storage.uploads[upload]
    storage.files[stored.name] = stored
    return json_departing({"file": told_file(stored, _host(exchange))}, headers=[("x-goog-upload-status", "final")])


def delete_file(exchange: Exchange) -> Departing:
    """DELETE /files/{name}."""
    del exchange.service.storage.files[_found(exchange).name]
    return json_departing({})


def download_file(exchange: Exchange) -> Departing:
    """GET /files/{name}:download; only what a job wrote can be read back."""
    stored = _found(exchange)
    if stored.purpose != "batch_output":
        raise Refused("bad-request", "Only generated files can be downloaded.")
    if exchange.arrived.query.get("alt") != "media":
        raise Refused("bad-request", "A download wants alt=media.")
    return Departing(200, [("content-type", "application/jsonl")], stored.content)


def _found(exchange: Exchange) -> StoredFile:
    name = f"files/{exchange.groups['name']}"
    stored = exchange.service.storage.files.get(name)
    if stored is None:
        raise Refused("forbidden", f"You do not have permission to access the File {name} or it may not exist.")
    return stored


def _host(exchange: Exchange) -> str:
    return f"http://{exchange.arrived.headers.get('host', '127.0.0.1')}/google/v1beta"


def told_file(stored: StoredFile, base: str) -> dict[str, Any]:
    """Tell about a file as the service does."""
    made = datetime.fromtimestamp(stored.created, UTC)
    generated = stored.purpose == "batch_output"
    told = {
        "name": stored.name,
        "displayName": stored.filename,
        "mimeType": "application/jsonl" if generated else stored.purpose,
        "sizeBytes": str(len(stored.content)),
        "createTime": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "updateTime": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "expirationTime": (made + _ENDS_AFTER).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "sha256Hash": base64.b64encode(hashlib.sha256(stored.content).hexdigest().encode()).decode(),
        "uri": f"{base}/{stored.name}",
        "state": "ACTIVE",
        "source": "GENERATED" if generated else "UPLOADED",
    }
    if generated:
        told["downloadUri"] = f"{base}/{stored.name}:download?alt=media"
    return told
