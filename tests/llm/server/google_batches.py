"""Gemini's files, uploaded by the resumable protocol, and its batches, made of inline requests or of such a file."""

import base64
import hashlib
import time
from datetime import UTC, datetime
from functools import partial
from typing import Any

import orjson

from tests.llm.server.error_replies import Refused
from tests.llm.server.google_generate import generate_question, writes_generated
from tests.llm.server.google_requests import MakeBatch, camelled, check_size
from tests.llm.server.jobs import PAGE, Job, LineResult, create, ends_now, found_job, line_of, listed
from tests.llm.server.selling import encoded
from tests.llm.server.service import Exchange, Service, StoredFile
from tests.llm.server.shapes import Strict, fitting
from tests.llm.server.wire import Departing, json_departing

_STATES = {"running": "RUNNING", "completed": "SUCCEEDED", "failed": "FAILED"}
_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch"
_TWO_DAYS = 172_800


def start_upload(exchange: Exchange) -> Departing:
    """POST /upload/.../files: say what comes, and be told where to send it."""
    headers, storage = exchange.arrived.headers, exchange.service.storage
    if headers.get("x-goog-upload-protocol") != "resumable" or headers.get("x-goog-upload-command") != "start":
        raise Refused("bad-request", "Uploads start with X-Goog-Upload-Protocol: resumable and the command start.")
    size = headers.get("x-goog-upload-header-content-length", "")
    if not size.isdigit():
        raise Refused("bad-request", "X-Goog-Upload-Header-Content-Length must say how many bytes come.")
    given = camelled(exchange.json()).get("file") or {}
    name, upload = given.get("name") or storage.new_name("files/"), storage.new_name("upload-")
    media = headers.get("x-goog-upload-header-content-type") or "application/octet-stream"
    storage.uploads[upload] = StoredFile(name, "google", given.get("displayName") or "", media, b"", int(size))
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
    base = f"http://{headers.get('host', '127.0.0.1')}/google/v1beta"
    told = {
        "name": stored.name, "displayName": stored.filename, "mimeType": stored.purpose,
        "sizeBytes": str(len(stored.content)), "createTime": _time(stored.created), "updateTime": _time(stored.created),
        "expirationTime": _time(stored.created + _TWO_DAYS),
        "sha256Hash": base64.b64encode(hashlib.sha256(stored.content).hexdigest().encode()).decode(),
        "uri": f"{base}/{stored.name}", "state": "ACTIVE", "source": "UPLOADED",
    }  # fmt: skip
    return json_departing({"file": told}, headers=[("x-goog-upload-status", "final")])


def delete_file(exchange: Exchange) -> Departing:
    """DELETE /files/{name}."""
    del exchange.service.storage.files[exchange.file("files/").name]
    return json_departing({})


def download_file(exchange: Exchange) -> Departing:
    """GET /files/{name}:download; only what a job wrote can be read back."""
    stored = exchange.file("files/")
    if stored.purpose != "batch_output" or exchange.arrived.query.get("alt") != "media":
        raise Refused("bad-request", "Only generated files can be downloaded, with alt=media.")
    return Departing(200, [("content-type", "application/jsonl")], stored.content)


class _RequestLine(Strict):
    request: Any
    key: str = ""
    metadata: Any = None


def create_batch(exchange: Exchange) -> Departing:
    """POST /models/{name}:batchGenerateContent."""
    service, model, body = exchange.service, exchange.groups["name"], camelled(exchange.json())
    check_size(len(exchange.arrived.body))
    fitting(MakeBatch, body)
    given = body["batch"]["inputConfig"]
    source = given.get("fileName") or ""
    rows = _file_rows(service, source) if source else given["requests"]["requests"]
    lines = []
    for at, row in enumerate(rows):
        metadata = row.get("metadata") or {}
        name = str(row.get("key") or metadata.get("key", at))
        lines.append(line_of(name, partial(generate_question, row["request"], model, "batch"), metadata))
    return create(
        service, _told, "batches/", provider="google", model=f"models/{model}", endpoint="generate", source=source,
        tag=body["batch"].get("displayName") or "", lines=lines,
    )  # fmt: skip


def _file_rows(service: Service, name: str) -> list[dict[str, Any]]:
    stored = service.storage.files.get(name)
    if stored is None or stored.provider != "google":
        raise Refused("not-found", f"The file {name} was not found.")
    try:
        rows = [orjson.loads(written) for written in stored.content.splitlines()]
    except ValueError:
        raise Refused("bad-request", f"A line of {name} is not valid JSON.") from None
    for row in rows:
        fitting(_RequestLine, row)
    return rows


def get_batch(exchange: Exchange) -> Departing:
    """GET /batches/{name}."""
    job = _looked_at(exchange.service, found_job(exchange, "batches/"))
    return json_departing(_told(exchange.service, job))


def list_batches(exchange: Exchange) -> Departing:
    """GET /batches, the newest first, a page at a time."""
    service, query = exchange.service, exchange.arrived.query
    jobs, start = listed(service, "google"), int(query.get("pageToken") or 0)
    end = start + min(int(query.get("pageSize") or PAGE), PAGE)
    told = {"operations": [_told(service, _looked_at(service, job)) for job in jobs[start:end]]}
    return json_departing({**told, **({"nextPageToken": str(end)} if end < len(jobs) else {})})


def _looked_at(service: Service, job: Job) -> Job:
    if ends_now(service, job, writes_generated(service.script)) and job.source and job.results:
        content = b"".join(encoded({"key": result.name, **_outcome(result)}) + b"\n" for result in job.results)
        keep = service.storage.keep
        job.output_file = keep("files/batch-", "google", content, filename="", purpose="batch_output").name
    return job


def _outcome(result: LineResult) -> dict[str, Any]:
    if result.status == 200:
        return {"response": result.body}
    error = (result.body or {}).get("error", {})
    return {"error": {"code": error.get("code"), "message": error.get("message")}}


def _inlined(result: LineResult) -> dict[str, Any]:
    metadata = dict(result.line.metadata or {})
    if "key" in metadata:
        metadata["key"] = result.name
    return {**_outcome(result), **({"metadata": metadata} if metadata else {})}


def _told(service: Service, job: Job) -> dict[str, Any]:
    running, wall = job.state == "running", time.time() - service.now()
    state = _STATES.get(job.state, job.state.upper())
    stats = {"requestCount": str(len(job.lines))}
    if running:
        stats["pendingRequestCount"] = str(len(job.lines) - job.done)
    else:
        failed = len(job.results) - job.answered
        stats |= {"successfulRequestCount": str(job.answered), "failedRequestCount": str(failed)}
    metadata: dict[str, Any] = {
        "@type": _TYPE, "model": job.model, "displayName": job.tag, "createTime": _time(wall + job.created),
        "updateTime": _time(wall + (job.ended or job.created)), "batchStats": stats,
        "state": f"BATCH_STATE_{'PENDING' if running and not job.looks else state}", "name": job.name,
    }  # fmt: skip
    told: dict[str, Any] = {"name": job.name, "metadata": metadata}
    if running:
        return told
    metadata["endTime"] = _time(wall + job.ended)
    if job.results:
        inline = {"inlinedResponses": [_inlined(result) for result in job.results]}
        metadata["output"] = {"responsesFile": job.output_file} if job.source else {"inlinedResponses": inline}
        told["response"] = {"@type": f"{_TYPE}Output", **metadata["output"]}
    if job.state == "failed":
        told["error"] = {"code": 13, "message": "The batch failed: internal_error."}
    return {**told, "done": True}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
