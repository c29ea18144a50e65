"""Gemini's batches: made of inline requests or of a file, looked at, listed."""

import time
from datetime import UTC, datetime
from typing import Any

import orjson

from tests.llm.server.error_replies import Refused
from tests.llm.server.exchange import Exchange, json_body
from tests.llm.server.google_generate import check_model, generate_question, writes_generated
from tests.llm.server.google_requests import check_batch_request, check_generate, fitting, pick
from tests.llm.server.job_runs import look_at, next_plan, register
from tests.llm.server.jobs import Job, Line, LineResult
from tests.llm.server.selling import encoded
from tests.llm.server.service import Service
from tests.llm.server.shapes import anything, fields, mapping_of, text
from tests.llm.server.wire import Departing, json_departing

_LINE = fields({"key": text(), "request": anything, "metadata": mapping_of(anything)}, required=("request",))
_STATES = {"running": "RUNNING", "completed": "SUCCEEDED", "failed": "FAILED"}
_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch"


def create_batch(exchange: Exchange) -> Departing:
    """POST /models/{name}:batchGenerateContent."""
    service, model = exchange.service, exchange.groups["name"]
    body = json_body(exchange)
    check_model(service, model)
    check_batch_request(body, size=len(exchange.arrived.body))
    given = pick(body["batch"], "inputConfig")
    source = pick(given, "fileName") or ""
    lines = _file_lines(service, source, model) if source else _inline_lines(given["requests"]["requests"], model)
    job = Job(
        name=service.storage.new_name("batches/"),
        provider="google",
        plan=next_plan(service),
        created=service.now(),
        model=f"models/{model}",
        endpoint="generate",
        source=source,
        tag=pick(body["batch"], "displayName") or "",
        lines=lines,
    )
    register(service, job)
    departing = json_departing(_told(service, job))
    departing.cut = "after" if job.plan.unsaid else ""
    return departing


def _inline_lines(requests: list[dict[str, Any]], model: str) -> list[Line]:
    lines = []
    for place, one in enumerate(requests):
        metadata = one.get("metadata") or {}
        lines.append(_line(str(metadata.get("key", place)), one["request"], model, metadata))
    return lines


def _file_lines(service: Service, name: str, model: str) -> list[Line]:
    stored = service.storage.files.get(name)
    if stored is None or stored.provider != "google":
        raise Refused("not-found", f"The file {name} was not found.")
    lines = []
    for number, written in enumerate(stored.content.splitlines(), 1):
        try:
            one = orjson.loads(written)
        except ValueError:
            raise Refused("bad-request", f"Line {number} of {name} is not valid JSON.") from None
        fitting(_LINE, one)
        lines.append(_line(str(one.get("key", number)), one["request"], model, {}))
    return lines


def _line(name: str, request: Any, model: str, metadata: dict[str, Any]) -> Line:
    try:
        check_generate(request)
        return Line(name, generate_question(request, model, "batch"), metadata=metadata)
    except Refused as refused:
        return Line(name, None, refused.message, metadata)


def get_batch(exchange: Exchange) -> Departing:
    """GET /batches/{name}."""
    return json_departing(_told(exchange.service, _looked_at(exchange.service, _found(exchange))))


def list_batches(exchange: Exchange) -> Departing:
    """GET /batches, the newest first, a page at a time."""
    service, query = exchange.service, exchange.arrived.query
    jobs = [job for job in reversed(service.storage.jobs.values()) if job.provider == "google"]
    start = int(query.get("pageToken") or 0)
    size = min(int(query.get("pageSize") or 20), service.script.page)
    told = {"operations": [_told(service, _looked_at(service, job)) for job in jobs[start : start + size]]}
    return json_departing({**told, **({"nextPageToken": str(start + size)} if start + size < len(jobs) else {})})


def _found(exchange: Exchange) -> Job:
    job = exchange.service.storage.jobs.get(f"batches/{exchange.groups['name']}")
    if job is None:
        raise Refused("not-found", f"The batch batches/{exchange.groups['name']} was not found.")
    return job


def _looked_at(service: Service, job: Job) -> Job:
    running = job.state == "running"
    look_at(service, job, writes_generated(service.script))
    if running and job.source and job.results:
        content = b"".join(encoded({"key": result.name, **_outcome(result)}) + b"\n" for result in job.results)
        stored = service.storage.keep(
            "files/batch-", "google", content, filename="", purpose="batch_output", created=int(time.time())
        )
        job.output_file = stored.name
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
    state = _STATES.get(job.state, job.state.upper())
    wall = time.time() - service.now()
    ended = job.state != "running"
    answered = sum(result.status == 200 for result in job.results)
    stats = {"requestCount": str(len(job.lines))}
    if ended:
        stats |= {"successfulRequestCount": str(answered), "failedRequestCount": str(len(job.results) - answered)}
    else:
        stats["pendingRequestCount"] = str(len(job.lines) - int(len(job.lines) * job.progress()))
    metadata = {
        "@type": _TYPE,
        "model": job.model,
        "displayName": job.tag,
        "createTime": _time(wall + job.created),
        "updateTime": _time(wall + (job.ended or job.created)),
        "batchStats": stats,
        "state": f"BATCH_STATE_{'PENDING' if job.state == 'running' and not job.looks else state}",
        "name": job.name,
    }
    told: dict[str, Any] = {"name": job.name, "metadata": metadata}
    if not ended:
        return told
    metadata["endTime"] = _time(wall + job.ended)
    if job.results:
        output = {"responsesFile": job.output_file}
        metadata["output"] = output if job.source else {"inlinedResponses": _responses(job)}
        told["response"] = {"@type": f"{_TYPE}Output", **metadata["output"]}
    if job.state == "failed":
        told["error"] = {"code": 13, "message": f"The batch failed: {job.plan.reason}."}
    return {**told, "done": True}


def _responses(job: Job) -> dict[str, Any]:
    return {"inlinedResponses": [_inlined(result) for result in job.results]}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
